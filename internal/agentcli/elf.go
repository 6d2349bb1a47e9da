package agentcli

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// arch is one machine, in everybody's words.
type arch struct {
	npm     string // x64
	triple  string // x86_64
	machine elf.Machine
}

func archOf(platform string) (arch, error) {
	switch platform {
	case "linux/amd64":
		return arch{"x64", "x86_64", elf.EM_X86_64}, nil
	case "linux/arm64":
		return arch{"arm64", "aarch64", elf.EM_AARCH64}, nil
	}
	return arch{}, fmt.Errorf("no agent has a program for platform %q", platform)
}

// runs reports whether the file at path is a program that runs in the sandbox. A file
// that is no native program of any system, such as a script, is no error; a native one
// of the wrong kind is, and reads "PATH is for ...".
func (s *search) runs(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return false, fmt.Errorf("cannot be looked at: %w", bare(err))
	case !info.Mode().IsRegular():
		return false, errors.New("is not a file")
	case info.Mode().Perm()&0o111 == 0:
		return false, errors.New("is not executable")
	}
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("cannot be read: %w", bare(err))
	}
	defer func() { _ = f.Close() }()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return false, nil // shorter than any program: a script, or nothing
	}
	if foreign := foreignFormat(magic); foreign != "" {
		return false, fmt.Errorf("is a program for %s", foreign)
	}
	if string(magic[:]) != elf.ELFMAG {
		return false, nil
	}
	return true, s.fits(f)
}

// fits reads the header of an ELF program.
func (s *search) fits(f io.ReaderAt) error {
	program, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("has no valid ELF header: %w", err)
	}
	if program.Machine != s.arch.machine {
		return fmt.Errorf("is for another machine (%s)", program.Machine)
	}
	loader, err := interpreter(program)
	if err != nil {
		return fmt.Errorf("has no valid ELF header: %w", err)
	}
	musl := strings.Contains(loader, "ld-musl")
	if loader != "" && musl != s.musl {
		return fmt.Errorf("is linked with another C library than the sandbox has (%s)", loader)
	}
	return nil
}

// interpreter is the dynamic loader of a program, "" for a static one.
func interpreter(program *elf.File) (string, error) {
	const longest = 4096
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(segment.Open(), longest))
		return strings.TrimRight(string(b), "\x00"), err
	}
	return "", nil
}

// foreignFormat names the system whose programs begin with magic, if it is not Linux.
func foreignFormat(magic [4]byte) string {
	switch {
	case magic == [4]byte{0xcf, 0xfa, 0xed, 0xfe}, magic == [4]byte{0xca, 0xfe, 0xba, 0xbe}:
		return "macOS"
	case magic[0] == 'M' && magic[1] == 'Z':
		return "Windows"
	}
	return ""
}

// bare is the cause of a file system's error, without the path that the sentence has
// already.
func bare(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
