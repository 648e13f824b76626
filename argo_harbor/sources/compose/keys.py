"""Which keys of a compose file's services are read, which change nothing, and why the others are refused."""

from __future__ import annotations

IGNORED = frozenset(
    {
        "annotations",
        "attach",
        "container_name",
        "depends_on",
        "expose",
        "hostname",
        "init",
        "labels",
        "logging",
        "networks",
        "ports",
        "pull_policy",
        "restart",
        "stdin_open",
        "stop_grace_period",
        "stop_signal",
        "tty",
    }
)
"""Keys that change nothing that a task can see in a pod, or that are read elsewhere."""
_OF_BOTH = IGNORED | {"build", "command", "entrypoint", "environment", "image", "volumes", "working_dir"}
OF_MAIN = _OF_BOTH | {"cpus", "deploy", "mem_limit", "platform", "tmpfs"}
OF_SERVICES = OF_MAIN | {"healthcheck", "shm_size", "user"}

PLATFORMS = "is the platform's to decide, not a task's"
REASONS = {
    "blkio_config": PLATFORMS,
    "cap_add": "asks for capabilities, which no container beside an agent gets",
    "cap_drop": "changes capabilities, which are the same for every container beside an agent",
    "cgroup": PLATFORMS,
    "cgroup_parent": PLATFORMS,
    "configs": "reads configs, which are files of this machine: copy them into the image",
    "credential_spec": "is for Windows containers",
    "device_cgroup_rules": PLATFORMS,
    "devices": "asks for devices of the machine",
    "dns": "names resolvers; the names that a pod resolves are the platform's and those of its services",
    "dns_opt": "changes how names are resolved, which is the platform's to decide",
    "dns_search": "changes how names are resolved, which is the platform's to decide",
    "env_file": "reads a file of variables: write them under environment",
    "extends": "extends another service: write the whole service here, or use YAML anchors",
    "external_links": "links to containers outside of the task",
    "extra_hosts": "names other machines; every container of a pod has the names of the services only",
    "gpus": "asks for GPUs, which only the agent's container gets, by environment.gpus of task.toml",
    "group_add": "changes groups: set them up in the image",
    "healthcheck": "is read of services only; main has [environment.healthcheck] in task.toml",
    "ipc": "shares memory with other containers or the machine",
    "isolation": "is for Windows containers",
    "links": "links to a service by another name: use the service's own name and depends_on",
    "mem_reservation": "is not mapped: write deploy.resources.limits.memory or mem_limit",
    "memswap_limit": "is about swap, which pods have none of",
    "network_mode": "changes the network, which all containers of a pod share",
    "oom_score_adj": PLATFORMS,
    "pid": "shares processes with other containers or the machine",
    "pids_limit": PLATFORMS,
    "privileged": "asks for all rights on the machine, which no container beside an agent gets",
    "profiles": "starts only when a profile is chosen, which nobody does here",
    "read_only": "wants a read-only root, which is not mapped",
    "runtime": PLATFORMS,
    "scale": "asks for several containers of one service",
    "secrets": "reads secrets: give them to a variable, as environment: NAME=${NAME}, and grant the name",
    "security_opt": "changes what protects the machine, which is the platform's to decide",
    "shm_size": "is read of services only",
    "sysctls": "changes the kernel's settings, which is the platform's to decide",
    "ulimits": "changes limits of processes, which is the platform's to decide",
    "user": "is read of services only; main has agent.user and verifier.user in task.toml",
    "userns_mode": PLATFORMS,
    "uts": PLATFORMS,
    "volumes_from": "mounts another container's folders: share a named volume instead",
}
