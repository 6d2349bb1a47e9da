package steps

import (
	"context"
	"fmt"
	"io"
	"path"
	"sync"

	"github.com/Insights/insightscli/internal/agent"
)

// SkillsIn names the bundle of skills.
type SkillsIn struct {
	Hash string `json:"hash"`
}

// SkillsOut is empty: the skills are where agents look for them.
type SkillsOut struct{}

// Skills copies the skills into the agent's home, to where Codex and Claude Code find
// them. The bundle itself is mounted.
func (s *Steps) Skills(ctx context.Context, c *agent.Client, in SkillsIn) (SkillsOut, error) {
	for _, dir := range []string{".agents/skills", ".claude/skills"} {
		r, w := io.Pipe()
		var writing sync.WaitGroup
		writing.Go(func() { _ = w.CloseWithError(s.SkillsTar(in.Hash, w)) })
		err := c.ArchiveIn(ctx, path.Join(AgentHome, dir), r)
		_ = r.Close() // ends the writer if it was not read to its end
		writing.Wait()
		if err != nil {
			return SkillsOut{}, fmt.Errorf("install skills in ~/%s: %w", dir, err)
		}
	}
	return SkillsOut{}, nil
}
