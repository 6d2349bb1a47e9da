package gitguard

import (
	"slices"
	"strings"
)

// reading is one way to understand an invocation: options, the command, its arguments.
type reading struct {
	options []string
	command string
	args    []string
}

// readings returns the ways to understand what follows the word git. There is more than
// one only behind an option that is not known here, of which a git newer than this may
// take the next word for the value. There is none where git only tells something.
func readings(args []string) []reading {
	var found []reading
	starts := []int{0}
	seen := make([]bool, len(args)+3)
	for len(starts) > 0 {
		i := starts[0]
		starts = starts[1:]
		if seen[i] || i >= len(args) {
			continue
		}
		seen[i] = true
		word := args[i]
		switch {
		case !strings.HasPrefix(word, "-"):
			found = append(found, reading{args[:i:i], word, args[i+1:]})
		case tells(word):
		case takesValue(word):
			starts = append(starts, i+2)
		case isFlag(word), strings.Contains(word, "="):
			starts = append(starts, i+1)
		default:
			starts = append(starts, i+1, i+2)
		}
	}
	return found
}

// tells reports whether git answers the option itself, whatever comes behind it.
func tells(option string) bool {
	switch option {
	case "-h", "--help", "-v", "--version", "--exec-path", "--html-path", "--man-path", "--info-path":
		return true
	}
	return strings.HasPrefix(option, "--list-cmds=")
}

// takesValue reports whether the next word is the option's value.
func takesValue(option string) bool {
	return slices.Contains([]string{
		"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--shallow-file", "--super-prefix",
	}, option)
}

func isFlag(option string) bool {
	return slices.Contains([]string{
		"-p", "--paginate", "-P", "--no-pager", "--bare", "--no-replace-objects", "--no-lazy-fetch", "--no-optional-locks", "--no-advice",
		"--literal-pathspecs", "--no-literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs",
	}, option)
}

// wellKnown are commands that git has had for long: none of them can be an alias.
const wellKnown = `add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore
 check-ref-format checkout checkout-index cherry cherry-pick clean clone commit-graph commit-tree config
 count-objects describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack
 fmt-merge-msg for-each-ref format-patch fsck gc grep hash-object help index-pack init interpret-trailers log
 ls-files ls-remote ls-tree mailinfo mailsplit merge merge-base merge-file merge-tree mergetool mktag mktree mv
 name-rev notes pack-objects pack-refs patch-id prune pull range-diff read-tree rebase receive-pack reflog remote
 repack replace rerere reset restore rev-list rev-parse revert rm send-pack shortlog show show-branch show-ref
 stage stash status stripspace submodule switch symbolic-ref tag unpack-objects update-index update-ref
 upload-pack var verify-commit verify-pack verify-tag version worktree write-tree`

func isWellKnown(command string) bool { return slices.Contains(strings.Fields(wellKnown), command) }
