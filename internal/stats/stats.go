// Package stats sums up what is recorded about runs: how many, how they ended, how long
// they took and what they cost. It reads state.db with one query and no log.
package stats

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// By is what runs are grouped by.
type By string

// The ways to group runs.
const (
	ByDay      By = "day"
	ByAgent    By = "agent"
	ByRepo     By = "repo"
	ByProvider By = "provider"
)

// All are the ways to group runs; the first is the usual one.
func All() []By { return []By{ByDay, ByAgent, ByRepo, ByProvider} }

// None is the name of the group of runs without a repository.
const None = "-"

// Query says which runs are summed up, and how.
type Query struct {
	By    By
	Since time.Time      // made since then; zero: all
	Zone  *time.Location // in which a day begins; nil is UTC
}

// Group is the sum of some runs. A run is in the group of each of its repositories.
type Group struct {
	Name      string `json:"name"`
	Runs      int    `json:"runs"`
	Live      int    `json:"live"` // not over yet
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Cancelled int    `json:"cancelled"`
	// Success is the share of the completed among those that completed or failed, from 0
	// to 1; nil: there are none.
	Success *float64 `json:"success_rate"`
	// Median and P90 are seconds from the start to the end of runs that completed or
	// failed; zero: there are none. Half of the runs, and nine in ten, took no longer.
	Median float64     `json:"median_seconds"`
	P90    float64     `json:"p90_seconds"`
	Used   task.Tokens `json:"usage"`

	took []time.Duration
	cost int64 // in 1e-9 US dollars
}

// Report is what is known of all chosen runs.
type Report struct {
	By     By        `json:"by"`
	Since  time.Time `json:"since,omitzero"`
	Groups []Group   `json:"groups"` // days in order, others by the number of runs
	Total  Group     `json:"total"`
}

// run is a run as it is recorded.
type run struct {
	created, started, finished int64
	state                      task.State
	agent, provider            string
	repos                      []byte // JSON list of org/name; NULL: none
	used                       task.Tokens
	cost                       int64
}

// query reads each run once, with what it used of models. It takes what it needs out of
// the Spec instead of reading all of it.
const query = `
	SELECT r.created, r.started, r.finished, r.state,
	  json_extract(r.spec, '$.agent.name'), json_extract(r.spec, '$.provider'), json_extract(r.spec, '$.repos'),
	  COALESCE(u.input, 0), COALESCE(u.output, 0), COALESCE(u.cache_read, 0), COALESCE(u.cache_write, 0),
	  COALESCE(u.thought, 0), COALESCE(u.requests, 0), COALESCE(u.unpriced, 0), COALESCE(u.cost, 0)
	FROM (SELECT n, id, created, started, finished, state, CAST(spec AS TEXT) AS spec FROM runs WHERE created >= ?) AS r
	LEFT JOIN (
	  SELECT run, SUM(input) AS input, SUM(output) AS output, SUM(cache_read) AS cache_read, SUM(cache_write) AS cache_write,
	    SUM(thought) AS thought, SUM(requests) AS requests, SUM(unpriced) AS unpriced, SUM(cost_nanos) AS cost
	  FROM usage GROUP BY run) AS u ON u.run = r.id
	ORDER BY r.n`

// Read sums up the runs of a state.db.
func Read(ctx context.Context, db *sql.DB, q Query) (Report, error) {
	since := int64(0)
	if !q.Since.IsZero() {
		since = q.Since.UnixNano()
	}
	rows, err := db.QueryContext(ctx, query, since)
	if err != nil {
		return Report{}, dberr.Wrap("stats.Read", "read runs", err)
	}
	s := sums{q: q, groups: map[string]*Group{}, total: Group{Name: "total"}}
	err = s.addAll(rows)
	if err = errors.Join(err, rows.Close()); err != nil {
		return Report{}, dberr.Wrap("stats.Read", "read runs", err)
	}
	return s.report(), nil
}

// sums are the groups while they grow.
type sums struct {
	q      Query
	groups map[string]*Group
	total  Group
}

func (s *sums) addAll(rows *sql.Rows) error {
	for rows.Next() {
		var r run
		var agent, provider sql.NullString
		u := &r.used
		err := rows.Scan(&r.created, &r.started, &r.finished, &r.state, &agent, &provider, &r.repos,
			&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.Thought, &u.Requests, &u.Unpriced, &r.cost)
		if err != nil {
			return err
		}
		u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
		r.agent, r.provider = agent.String, provider.String
		names, err := s.names(r)
		if err != nil {
			return err
		}
		for _, name := range names {
			g := s.groups[name]
			if g == nil {
				g = &Group{Name: name}
				s.groups[name] = g
			}
			g.add(r)
		}
		s.total.add(r)
	}
	return rows.Err()
}

// names are the groups that a run belongs to.
func (s *sums) names(r run) ([]string, error) {
	switch s.q.By {
	case ByAgent:
		return []string{cmp.Or(r.agent, None)}, nil
	case ByProvider:
		return []string{cmp.Or(r.provider, None)}, nil
	case ByRepo:
		return reposOf(r.repos)
	}
	zone := s.q.Zone
	if zone == nil {
		zone = time.UTC
	}
	return []string{time.Unix(0, r.created).In(zone).Format(time.DateOnly)}, nil
}

func reposOf(list []byte) ([]string, error) {
	if len(list) == 0 {
		return []string{None}, nil
	}
	var repos []task.Repo
	if err := json.Unmarshal(list, &repos); err != nil {
		return nil, fmt.Errorf("repositories of a run: %w", err)
	}
	var names []string
	for _, r := range repos {
		if name := r.Org + "/" + r.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{None}, nil
	}
	return names, nil
}

func (g *Group) add(r run) {
	g.Runs++
	g.Used = g.Used.Add(r.used)
	g.cost += r.cost
	switch r.state {
	case task.StateCompleted:
		g.Completed++
	case task.StateFailed:
		g.Failed++
	case task.StateCancelled:
		g.Cancelled++
		return
	default:
		g.Live++
		return
	}
	if r.started > 0 && r.finished >= r.started {
		g.took = append(g.took, time.Duration(r.finished-r.started))
	}
}

// close computes what needs all runs of the group.
func (g *Group) close() {
	if n := g.Completed + g.Failed; n > 0 {
		share := float64(g.Completed) / float64(n)
		g.Success = &share
	}
	slices.Sort(g.took)
	g.Median, g.P90 = percentile(g.took, 50).Seconds(), percentile(g.took, 90).Seconds()
	g.Used.CostUSD = float64(g.cost) / 1e9
}

// percentile is the shortest time that so many percent of all did not exceed: one that was
// really taken, not one between two.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

func (s *sums) report() Report {
	rep := Report{By: s.q.By, Since: s.q.Since, Groups: make([]Group, 0, len(s.groups)), Total: s.total}
	for _, g := range s.groups {
		g.close()
		rep.Groups = append(rep.Groups, *g)
	}
	slices.SortFunc(rep.Groups, func(a, b Group) int {
		if s.q.By != ByDay {
			if c := cmp.Compare(b.Runs, a.Runs); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.Name, b.Name)
	})
	rep.Total.close()
	return rep
}
