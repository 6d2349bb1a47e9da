module github.com/Insights/insightscli

go 1.26
