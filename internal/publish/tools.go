package publish

import "github.com/Insights/insightscli/internal/gateway/mcp"

// cwd and branch are arguments of several tools.
const (
	argCwd  = `"cwd":{"type":"string","description":"A directory of the repository; the first repository of the run if not given."}`
	argBody = `"body":{"type":"string","description":"Further paragraphs of the message. No Co-Authored-By; trailers are added."}`
)

// Tools are the tools, for the agent's MCP server.
func (p *Publisher) Tools() []mcp.Tool {
	return []mcp.Tool{
		tool("git_signed_commit",
			"Publish the staged changes as one commit, signed by GitHub: use it in the place of git commit and git push. Stage with git add, or name paths. "+
				"Exactly the index is published, to the current branch or to a new one; never to the default branch. Your checkout then is at the new commit.",
			`{"type":"object","additionalProperties":false,"required":["message"],"properties":{
			"message":{"type":"string","description":"The headline, one line."},
			`+argBody+`,
			"branch":{"type":"string","description":"The branch to publish to; the current one if not given. It is made if it does not exist."},
			"paths":{"type":"array","items":{"type":"string"},"description":"Staged first, as by git add; relative to cwd."},
			`+argCwd+`}}`, p.commit),
		tool("git_signed_rewrite",
			"Replace a published branch by the commits of your checkout, made again and signed by GitHub: use it in the place of git push --force, after a rebase or an amended history. "+
				"It refuses if the branch has commits on GitHub that your checkout has not seen, and if there are merges among yours.",
			`{"type":"object","additionalProperties":false,"properties":{
			"branch":{"type":"string","description":"The branch to replace; the current one if not given."},
			"onto":{"type":"string","description":"The commit on GitHub that yours come after; where HEAD left the base branch if not given."},
			`+argCwd+`}}`, p.rewrite),
		tool("git_signed_merge",
			"Merge a branch of GitHub, the base branch if none is named, into a published branch, as a commit signed by GitHub: use it in the place of git merge. "+
				"If it conflicts: git fetch, git merge origin/BRANCH, resolve, git add, then call it again, and it publishes your resolution.",
			`{"type":"object","additionalProperties":false,"properties":{
			"from":{"type":"string","description":"The branch on GitHub to bring in."},
			"branch":{"type":"string","description":"The published branch to merge into; the current one if not given."},
			"message":{"type":"string","description":"The headline, one line."},
			`+argBody+`,
			`+argCwd+`}}`, p.merge),
		tool("create_pull_request",
			"Open a pull request for a published branch, or find the open one that it has. Publish with git_signed_commit first.",
			`{"type":"object","additionalProperties":false,"required":["title"],"properties":{
			"title":{"type":"string"},
			"body":{"type":"string","description":"Markdown: what was changed and why, and how it was tested."},
			"base":{"type":"string","description":"The branch to merge into; the one that this run began with if not given."},
			"head":{"type":"string","description":"The published branch; the current one if not given."},
			"draft":{"type":"boolean","description":"true if not given."},
			"labels":{"type":"array","items":{"type":"string"}},
			`+argCwd+`}}`, p.pull),
	}
}
