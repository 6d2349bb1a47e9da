package config

import "path/filepath"

// EnvFile returns the .env file that Load reads in dir, or, where there is none, the
// path of the one to make: at the root of the repository, else in dir.
func EnvFile(dir string) (path string, found bool) {
	if path := findUp(dir, ".env"); path != "" {
		return path, true
	}
	return filepath.Join(Project(dir), ".env"), false
}

// Project returns the root of the repository that dir lies in, or dir.
func Project(dir string) string {
	dirs := upToRepository(dir)
	return dirs[len(dirs)-1]
}
