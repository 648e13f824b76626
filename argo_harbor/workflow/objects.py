"""The Argo and Kubernetes objects that the compiler emits, as types for mypy. Generated; do not
edit.

Made from hera's models by `python -m tests.support.hera_models`: hera is the source of every name and type
here and the judge of every emitted object in the tests, but importing it takes seconds, which a compile must
not. Fields whose type is not among these classes are left out: the compiler never writes them.
"""

from __future__ import annotations

from typing import TypedDict


class Workflow(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: WorkflowSpec


class WorkflowTemplate(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: WorkflowSpec


class CronWorkflow(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: CronWorkflowSpec


class ObjectMeta(TypedDict, total=False):
    annotations: dict[str, str]
    deletionGracePeriodSeconds: int
    finalizers: list[str]
    generateName: str
    generation: int
    labels: dict[str, str]
    name: str
    namespace: str
    resourceVersion: str
    selfLink: str
    uid: str


class WorkflowSpec(TypedDict, total=False):
    activeDeadlineSeconds: int
    archiveLogs: bool
    arguments: Arguments
    artifactRepositoryRef: ArtifactRepositoryRef
    automountServiceAccountToken: bool
    dnsPolicy: str
    entrypoint: str
    executor: ExecutorConfig
    hostAliases: list[HostAlias]
    hostNetwork: bool
    imagePullSecrets: list[LocalObjectReference]
    nodeSelector: dict[str, str]
    onExit: str
    parallelism: int
    podGC: PodGC
    podMetadata: Metadata
    podPriorityClassName: str
    podSpecPatch: str
    priority: int
    retryStrategy: RetryStrategy
    schedulerName: str
    securityContext: PodSecurityContext
    serviceAccountName: str
    shutdown: str
    suspend: bool
    synchronization: Synchronization
    templateDefaults: Template
    templates: list[Template]
    tolerations: list[Toleration]
    ttlStrategy: TTLStrategy
    volumes: list[Volume]
    workflowMetadata: WorkflowMetadata


class CronWorkflowSpec(TypedDict, total=False):
    concurrencyPolicy: str
    failedJobsHistoryLimit: int
    schedules: list[str]
    startingDeadlineSeconds: int
    successfulJobsHistoryLimit: int
    suspend: bool
    timezone: str
    when: str
    workflowMetadata: ObjectMeta
    workflowSpec: WorkflowSpec


class WorkflowMetadata(TypedDict, total=False):
    annotations: dict[str, str]
    labels: dict[str, str]


class Metadata(TypedDict, total=False):
    annotations: dict[str, str]
    labels: dict[str, str]


class Arguments(TypedDict, total=False):
    artifacts: list[Artifact]
    parameters: list[Parameter]


class Parameter(TypedDict, total=False):
    default: str
    description: str
    enum: list[str]
    globalName: str
    name: str
    value: str


class ArtifactRepositoryRef(TypedDict, total=False):
    configMap: str
    key: str


class ExecutorConfig(TypedDict, total=False):
    serviceAccountName: str


class LocalObjectReference(TypedDict, total=False):
    name: str


class PodGC(TypedDict, total=False):
    deleteDelayDuration: str
    strategy: str


class TTLStrategy(TypedDict, total=False):
    secondsAfterCompletion: int
    secondsAfterFailure: int
    secondsAfterSuccess: int


class Template(TypedDict, total=False):
    activeDeadlineSeconds: str | int
    annotations: dict[str, str]
    automountServiceAccountToken: bool
    container: Container
    daemon: bool
    dag: DAGTemplate
    executor: ExecutorConfig
    failFast: bool
    hostAliases: list[HostAlias]
    initContainers: list[UserContainer]
    inputs: Inputs
    metadata: Metadata
    name: str
    nodeSelector: dict[str, str]
    outputs: Outputs
    parallelism: int
    podSpecPatch: str
    priorityClassName: str
    resource: ResourceTemplate
    retryStrategy: RetryStrategy
    schedulerName: str
    securityContext: PodSecurityContext
    serviceAccountName: str
    sidecars: list[UserContainer]
    synchronization: Synchronization
    timeout: str
    tolerations: list[Toleration]
    volumes: list[Volume]


class Inputs(TypedDict, total=False):
    artifacts: list[Artifact]
    parameters: list[Parameter]


class Outputs(TypedDict, total=False):
    artifacts: list[Artifact]
    exitCode: str
    parameters: list[Parameter]
    result: str


class Artifact(TypedDict, total=False):
    archive: ArchiveStrategy
    archiveLogs: bool
    deleted: bool
    fromExpression: str
    globalName: str
    mode: int
    name: str
    optional: bool
    path: str
    recurseMode: bool
    subPath: str


class ArchiveStrategy(TypedDict, total=False):
    none: NoneStrategy


class NoneStrategy(TypedDict, total=False):
    pass


class RetryStrategy(TypedDict, total=False):
    expression: str
    limit: str | int
    retryPolicy: str


class DAGTemplate(TypedDict, total=False):
    failFast: bool
    target: str
    tasks: list[DAGTask]


class DAGTask(TypedDict, total=False):
    arguments: Arguments
    dependencies: list[str]
    depends: str
    inline: Template
    name: str
    onExit: str
    template: str
    when: str
    withParam: str
    withSequence: Sequence


class Sequence(TypedDict, total=False):
    count: str | int
    end: str | int
    format: str
    start: str | int


class ResourceTemplate(TypedDict, total=False):
    action: str
    failureCondition: str
    flags: list[str]
    manifest: str
    mergeStrategy: str
    setOwnerReference: bool
    successCondition: str


class Container(TypedDict, total=False):
    args: list[str]
    command: list[str]
    env: list[EnvVar]
    image: str
    imagePullPolicy: str
    livenessProbe: Probe
    name: str
    readinessProbe: Probe
    resources: ResourceRequirements
    restartPolicy: str
    securityContext: SecurityContext
    startupProbe: Probe
    stdin: bool
    stdinOnce: bool
    terminationMessagePath: str
    terminationMessagePolicy: str
    tty: bool
    volumeMounts: list[VolumeMount]
    workingDir: str


class UserContainer(TypedDict, total=False):
    args: list[str]
    command: list[str]
    env: list[EnvVar]
    image: str
    imagePullPolicy: str
    livenessProbe: Probe
    mirrorVolumeMounts: bool
    name: str
    readinessProbe: Probe
    resources: ResourceRequirements
    restartPolicy: str
    securityContext: SecurityContext
    startupProbe: Probe
    stdin: bool
    stdinOnce: bool
    terminationMessagePath: str
    terminationMessagePolicy: str
    tty: bool
    volumeMounts: list[VolumeMount]
    workingDir: str


class ResourceRequirements(TypedDict, total=False):
    limits: dict[str, str]
    requests: dict[str, str]


class EnvVar(TypedDict, total=False):
    name: str
    value: str
    valueFrom: EnvVarSource


class EnvVarSource(TypedDict, total=False):
    fieldRef: ObjectFieldSelector
    secretKeyRef: SecretKeySelector


class ObjectFieldSelector(TypedDict, total=False):
    apiVersion: str
    fieldPath: str


class SecretKeySelector(TypedDict, total=False):
    key: str
    name: str
    optional: bool


class Probe(TypedDict, total=False):
    exec: ExecAction
    failureThreshold: int
    httpGet: HTTPGetAction
    initialDelaySeconds: int
    periodSeconds: int
    successThreshold: int
    terminationGracePeriodSeconds: int
    timeoutSeconds: int


class ExecAction(TypedDict, total=False):
    command: list[str]


class HTTPGetAction(TypedDict, total=False):
    host: str
    httpHeaders: list[HTTPHeader]
    path: str
    port: int
    scheme: str


class HTTPHeader(TypedDict, total=False):
    name: str
    value: str


class SecurityContext(TypedDict, total=False):
    allowPrivilegeEscalation: bool
    capabilities: Capabilities
    privileged: bool
    procMount: str
    readOnlyRootFilesystem: bool
    runAsGroup: int
    runAsNonRoot: bool
    runAsUser: int
    seccompProfile: SeccompProfile


class PodSecurityContext(TypedDict, total=False):
    fsGroup: int
    fsGroupChangePolicy: str
    runAsGroup: int
    runAsNonRoot: bool
    runAsUser: int
    seLinuxChangePolicy: str
    seccompProfile: SeccompProfile
    supplementalGroups: list[int]
    supplementalGroupsPolicy: str


class Capabilities(TypedDict, total=False):
    add: list[str]
    drop: list[str]


class SeccompProfile(TypedDict, total=False):
    localhostProfile: str
    type: str


class Toleration(TypedDict, total=False):
    effect: str
    key: str
    operator: str
    tolerationSeconds: int
    value: str


class Volume(TypedDict, total=False):
    configMap: ConfigMapVolumeSource
    emptyDir: EmptyDirVolumeSource
    name: str
    secret: SecretVolumeSource


class VolumeMount(TypedDict, total=False):
    mountPath: str
    mountPropagation: str
    name: str
    readOnly: bool
    recursiveReadOnly: str
    subPath: str
    subPathExpr: str


class EmptyDirVolumeSource(TypedDict, total=False):
    medium: str
    sizeLimit: str


class ConfigMapVolumeSource(TypedDict, total=False):
    defaultMode: int
    items: list[KeyToPath]
    name: str
    optional: bool


class SecretVolumeSource(TypedDict, total=False):
    defaultMode: int
    items: list[KeyToPath]
    optional: bool
    secretName: str


class KeyToPath(TypedDict, total=False):
    key: str
    mode: int
    path: str


class HostAlias(TypedDict, total=False):
    hostnames: list[str]
    ip: str


class Synchronization(TypedDict, total=False):
    mutexes: list[Mutex]


class Mutex(TypedDict, total=False):
    database: bool
    name: str
    namespace: str
