module argo-harbor.test/attacker

go 1.25.0
