package capture

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

func mustAddress(t *testing.T, table *table, name string) netip.Addr {
	t.Helper()
	addr, ok := table.address(name)
	if !ok {
		t.Fatalf("%s has no address", name)
	}
	return addr
}

func TestANameKeepsItsAddress(t *testing.T) {
	table := newTable()
	a, b := mustAddress(t, table, "a.example"), mustAddress(t, table, "b.example")
	if a == b || a != mustAddress(t, table, "a.example") {
		t.Errorf("%s, %s", a, b)
	}
	if block := netip.MustParsePrefix(wire.EgressAddresses); !block.Contains(a) || !block.Contains(b) {
		t.Errorf("%s, %s are not of the block", a, b)
	}
	name, release := table.use(b)
	defer release()
	if name != "b.example" || table.name(a) != "a.example" || table.name(netip.MustParseAddr("198.19.0.1")) != "" {
		t.Errorf("%s is %q", b, name)
	}
}

// Without room the name goes that was not asked for the longest and has no connection, and
// its address stays unused for long.
func TestTableForgets(t *testing.T) {
	table := newTable()
	held := mustAddress(t, table, "held")
	_, release := table.use(held)
	old := mustAddress(t, table, "old")
	young := mustAddress(t, table, "young")
	for i := range maxNames - 3 {
		mustAddress(t, table, strconv.Itoa(i))
	}
	mustAddress(t, table, "young")
	for i := range 100 {
		if addr := mustAddress(t, table, "new"+strconv.Itoa(i)); addr == old || addr == held || addr == young {
			t.Fatalf("%s was given again at once", addr)
		}
	}
	if len(table.byName) != maxNames || len(table.byAddr) != maxNames || table.recent.Len() != maxNames {
		t.Errorf("%d, %d, %d names", len(table.byName), len(table.byAddr), table.recent.Len())
	}
	if table.name(old) != "" || table.name(young) != "young" || table.name(held) != "held" {
		t.Errorf("old is %q, young %q, held %q", table.name(old), table.name(young), table.name(held))
	}
	release()
	for i := range maxNames {
		mustAddress(t, table, "more"+strconv.Itoa(i))
	}
	if table.name(held) != "" {
		t.Error("a name whose connection has ended is never forgotten")
	}
}

func TestTableIsFullOfConnections(t *testing.T) {
	table := newTable()
	for i := range maxNames {
		_, _ = table.use(mustAddress(t, table, strconv.Itoa(i)))
	}
	if addr, ok := table.address("one more"); ok {
		t.Errorf("it has %s", addr)
	}
}

// FuzzTable: whatever happens in whatever order, a name has one address and an address one
// name, and those with connections keep theirs.
func FuzzTable(f *testing.F) {
	f.Add([]byte("abcabc\x80\x81def"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		table := newTable()
		table.size = 64 // of which some are always taken
		live := map[netip.Addr]string{}
		for _, s := range steps {
			name := strconv.Itoa(int(s & 0x1f))
			addr, ok := table.address(name)
			if !ok || !table.block.Contains(addr) || table.name(addr) != name {
				t.Fatalf("%s has %s, %v, which is %q", name, addr, ok, table.name(addr))
			}
			if s&0x80 != 0 {
				table.use(addr)
				live[addr] = name
			}
			if s&0x40 != 0 {
				table.mu.Lock()
				table.forget()
				table.mu.Unlock()
			}
			for addr, name := range live {
				if table.name(addr) != name {
					t.Fatalf("%s was of %s and is of %q", addr, name, table.name(addr))
				}
			}
			if len(table.byName) != len(table.byAddr) || len(table.byName) != table.recent.Len() {
				t.Fatal("the table is of two minds")
			}
		}
	})
}

// FuzzSocketAddress: what the kernel says is read as it is, or not at all.
func FuzzSocketAddress(f *testing.F) {
	f.Add([]byte{2, 0, 1, 187, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{10, 0, 1, 187})
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, err := socketAddress(b)
		if err != nil {
			return
		}
		if !addr.IsValid() || !addr.Addr().Is4() || addr.Addr().As4() != [4]byte(b[4:8]) || addr.Port() != uint16(b[2])<<8|uint16(b[3]) {
			t.Fatalf("% x is %s", b, addr)
		}
	})
}
