// Package platform is the small part of the Insights platform that a machine needs
// for itself: teams and users, access tokens with scopes, OAuth applications,
// feature flags and sandbox environments, in the tables of state.db. It knows no run
// beyond its id and whether it is over.
package platform
