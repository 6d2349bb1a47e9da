package git

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Wanted is what a client asks for, in ids of objects.
type Wanted struct {
	Wants   []string
	Haves   []string // what it has, with all that leads there
	Shallow []string // commits of its own without their parents
	// Deepen: more history is asked for, in all Depth commits; 0 is another measure.
	Deepen bool
	Depth  int
}

// asked is a request.
type asked struct {
	Wanted
	refs     bool     // it asks which branches there are
	prefixes []string // of their names; none are all
}

var errMalformed = errors.New("the request is malformed")

const flushPkt = "0000"

// pktLine is one line as git frames it.
func pktLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// maxMessage bounds what a client is told, which is one line.
const maxMessage = 900

// errorLine is what makes a client end with a message.
func errorLine(err error) []byte {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "")
	}
	return []byte(pktLine("ERR " + text))
}

// parse reads a request, of any version of the protocol. What it does not know is git's
// business.
func parse(body []byte) (asked, error) {
	var a asked
	for len(body) > 0 {
		if len(body) < 4 {
			return a, errMalformed
		}
		size, err := strconv.ParseUint(string(body[:4]), 16, 16)
		if err != nil {
			return a, errMalformed
		}
		if size < 4 { // flush and other marks
			body = body[4:]
			continue
		}
		if int(size) > len(body) {
			return a, errMalformed
		}
		a.line(strings.TrimSuffix(string(body[4:size]), "\n"))
		body = body[size:]
	}
	return a, nil
}

func (a *asked) line(text string) {
	word, value, _ := strings.Cut(text, " ")
	switch {
	case text == "command=ls-refs":
		a.refs = true
	case word == "ref-prefix":
		a.prefixes = append(a.prefixes, value)
	case word == "want":
		oid, _, _ := strings.Cut(value, " ") // older versions tell what they can do behind it
		a.Wants = appendID(a.Wants, oid)
	case word == "have":
		a.Haves = appendID(a.Haves, value)
	case word == "shallow":
		a.Shallow = appendID(a.Shallow, value)
	case word == "deepen":
		a.Deepen = true
		a.Depth, _ = strconv.Atoi(value) // git itself refuses what is no number
	case strings.HasPrefix(word, "deepen-"):
		a.Deepen = true
	}
}

// appendID adds what is the id of an object.
func appendID(ids []string, id string) []string {
	if (len(id) == 40 || len(id) == 64) && strings.Trim(id, "0123456789abcdef") == "" {
		return append(ids, id)
	}
	return ids
}
