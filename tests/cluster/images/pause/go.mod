module argo-harbor.test/pause

go 1.25.0
