package render

// Held is how many bytes a Text keeps between two events.
func Held(t *Text) int {
	n := cap(t.buf)
	for _, c := range []*cleaner{t.outClean, t.errClean} {
		if c != nil {
			n += cap(c.params) + cap(c.tail)
		}
	}
	return n
}
