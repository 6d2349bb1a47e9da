// Package config is the only reader of the environment and of configuration
// files. [Load] merges, for every setting of one table ([Settings]),
//
//	flag > environment > .env.local > .env > insights.yaml > config.yaml > default
//
// into one typed [Config] and remembers where each value came from. A variable
// that is set but empty counts as not set.
//
// .env.local, .env and insights.yaml are looked for in the working directory and
// its parents up to the root of the repository; each time the nearest one counts.
// Outside a repository only the working directory is looked at, so that a file in
// a shared /tmp decides nothing. config.yaml is the user's own, below
// $XDG_CONFIG_HOME/insightscli. A file that cannot be understood is an error that
// names the file and the line; so is an unknown key of a YAML file, where it would
// be a typing mistake. A .env file is shared with other programs: what is not ours
// there is left alone, a line that makes no sense is a notice and no error, and the
// file is never loaded into the process.
//
// Viper merges and decodes; it is an implementation detail, always a fresh
// instance and never in a signature. Package dotenv reads .env files, and godotenv
// to tell where other programs read something else; go.yaml.in/yaml/v3 is used
// directly because only its nodes know line numbers.
package config
