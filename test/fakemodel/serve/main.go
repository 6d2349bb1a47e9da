// Package main serves the fake model on an address and writes a line of JSON per
// request to stdout, for a look by hand at how an agent talks to it:
//
//	go run ./test/fakemodel/serve -listen 127.0.0.1:18080 -key sk-any
//
// POST /release?hold=NAME releases the streams that a script holds at NAME.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/Insights/insightscli/test/fakemodel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on, or unix:PATH")
	key := flag.String("key", "", "the only key that is let in")
	flag.Parse()

	network, address := "tcp", *listen
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", ln.Addr())
	model := fakemodel.New(fakemodel.Options{RequireKey: *key, Log: os.Stdout})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, r *http.Request) {
		model.Release(r.URL.Query().Get("hold"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.Handle("/", model)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // ends Serve, which has the error
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
