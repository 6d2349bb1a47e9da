package wire

// The gh of a sandbox.
const (
	GHPath = BinDir + "/gh" // a link to the agent server, as GitPath is
	// GitHubSocket is where PID 1 tells programs of the agent what MethodGitHub has told
	// it: a name in the abstract namespace of the sandbox's own network, so that the token
	// is in no file. A connection is answered by one [GitHubState], JSON.
	GitHubSocket = "@insights/github"
	// MaxGitHub bounds that answer.
	MaxGitHub = 64 << 10
)

// GitHubState is what programs of the agent are told. Where nothing is Managed they are on
// their own; an empty token of a managed one means that there is none any more.
type GitHubState struct {
	Managed bool `json:"managed"`
	GitHub
}

// GitRewrite begins the settings by which the git of a sandbox asks the host for the run's
// repositories: PortGit, spelled out.
const GitRewrite = "url.http://127.0.0.1:47825/"
