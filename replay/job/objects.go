package job

// The part of Kubernetes' objects that manifests use, with their names there (batch/v1 and
// core/v1). Kubernetes' own types would add tens of megabytes to the program.

type meta struct {
	Name      string            `yaml:"name,omitempty"`
	Namespace string            `yaml:"namespace,omitempty"`
	Labels    map[string]string `yaml:"labels,omitempty"`
}

type service struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Metadata   meta        `yaml:"metadata"`
	Spec       serviceSpec `yaml:"spec"`
}

type serviceSpec struct {
	ClusterIP string            `yaml:"clusterIP"`
	NotReady  bool              `yaml:"publishNotReadyAddresses"`
	Selector  map[string]string `yaml:"selector"`
	Ports     []servicePort     `yaml:"ports"`
}

type servicePort struct {
	Name     string `yaml:"name"`
	Protocol string `yaml:"protocol"`
	Port     int    `yaml:"port"`
}

type batchJob struct {
	APIVersion string  `yaml:"apiVersion"`
	Kind       string  `yaml:"kind"`
	Metadata   meta    `yaml:"metadata"`
	Spec       jobSpec `yaml:"spec"`
}

type jobSpec struct {
	Mode             string         `yaml:"completionMode,omitempty"`
	Completions      int            `yaml:"completions"`
	Parallelism      int            `yaml:"parallelism"`
	BackoffLimit     *int           `yaml:"backoffLimit,omitempty"`
	BackoffPerIndex  *int           `yaml:"backoffLimitPerIndex,omitempty"`
	MaxFailedIndexes *int           `yaml:"maxFailedIndexes,omitempty"`
	Replacement      string         `yaml:"podReplacementPolicy,omitempty"`
	Failures         *failurePolicy `yaml:"podFailurePolicy,omitempty"`
	Deadline         int64          `yaml:"activeDeadlineSeconds"`
	Template         template       `yaml:"template"`
}

type failurePolicy struct {
	Rules []failureRule `yaml:"rules"`
}

type failureRule struct {
	Action     string         `yaml:"action"`
	ExitCodes  *exitCodes     `yaml:"onExitCodes,omitempty"`
	Conditions []podCondition `yaml:"onPodConditions,omitempty"`
}

type exitCodes struct {
	Container string `yaml:"containerName"`
	Operator  string `yaml:"operator"`
	Values    []int  `yaml:"values"`
}

type podCondition struct {
	Type   string `yaml:"type"`
	Status string `yaml:"status"`
}

type template struct {
	Metadata meta    `yaml:"metadata"`
	Spec     podSpec `yaml:"spec"`
}

type podSpec struct {
	Subdomain    string           `yaml:"subdomain,omitempty"`
	Restart      string           `yaml:"restartPolicy"`
	Token        bool             `yaml:"automountServiceAccountToken"`
	ServiceLinks bool             `yaml:"enableServiceLinks"`
	Grace        int              `yaml:"terminationGracePeriodSeconds"`
	Security     podSecurity      `yaml:"securityContext"`
	Affinity     *affinity        `yaml:"affinity,omitempty"`
	Spread       []topologySpread `yaml:"topologySpreadConstraints,omitempty"`
	Containers   []container      `yaml:"containers"`
	Volumes      []volume         `yaml:"volumes"`
}

type podSecurity struct {
	NonRoot bool    `yaml:"runAsNonRoot"`
	User    int     `yaml:"runAsUser"`
	Group   int     `yaml:"runAsGroup"`
	FSGroup int     `yaml:"fsGroup"`
	Seccomp seccomp `yaml:"seccompProfile"`
}

type seccomp struct {
	Type string `yaml:"type"`
}

type affinity struct {
	Anti antiAffinity `yaml:"podAntiAffinity"`
}

type antiAffinity struct {
	Required  []podTerm      `yaml:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []weightedTerm `yaml:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

type weightedTerm struct {
	Weight int     `yaml:"weight"`
	Term   podTerm `yaml:"podAffinityTerm"`
}

type podTerm struct {
	Selector labelSelector `yaml:"labelSelector"`
	Topology string        `yaml:"topologyKey"`
}

type labelSelector struct {
	Match map[string]string `yaml:"matchLabels"`
}

type topologySpread struct {
	MaxSkew  int           `yaml:"maxSkew"`
	Topology string        `yaml:"topologyKey"`
	When     string        `yaml:"whenUnsatisfiable"`
	Selector labelSelector `yaml:"labelSelector"`
}

type container struct {
	Name      string            `yaml:"name"`
	Image     string            `yaml:"image"`
	Args      []string          `yaml:"args"`
	Env       []envVar          `yaml:"env,omitempty"`
	EnvFrom   []envFrom         `yaml:"envFrom,omitempty"`
	Ports     []containerPort   `yaml:"ports,omitempty"`
	Resources resources         `yaml:"resources"`
	Security  containerSecurity `yaml:"securityContext"`
	Mounts    []volumeMount     `yaml:"volumeMounts"`
}

type containerPort struct {
	Name     string `yaml:"name"`
	Protocol string `yaml:"protocol"`
	Port     int    `yaml:"containerPort"`
}

type envVar struct {
	Name  string    `yaml:"name"`
	Value string    `yaml:"value,omitempty"`
	From  *envValue `yaml:"valueFrom,omitempty"`
}

type envValue struct {
	Field  *fieldRef  `yaml:"fieldRef,omitempty"`
	Secret *secretRef `yaml:"secretKeyRef,omitempty"`
}

type envFrom struct {
	Secret secretName `yaml:"secretRef"`
}

type secretName struct {
	Name string `yaml:"name"`
}

type fieldRef struct {
	Path string `yaml:"fieldPath"`
}

type secretRef struct {
	Name string `yaml:"name"`
	Key  string `yaml:"key"`
}

type resources struct {
	Requests amounts `yaml:"requests"`
	Limits   amounts `yaml:"limits"`
}

type amounts struct {
	CPU    string `yaml:"cpu"`
	Memory string `yaml:"memory"`
}

type containerSecurity struct {
	Escalation bool         `yaml:"allowPrivilegeEscalation"`
	ReadOnly   bool         `yaml:"readOnlyRootFilesystem"`
	Caps       capabilities `yaml:"capabilities"`
}

type capabilities struct {
	Drop []string `yaml:"drop"`
}

type volume struct {
	Name   string       `yaml:"name"`
	Claim  *claim       `yaml:"persistentVolumeClaim,omitempty"`
	Secret *secretFiles `yaml:"secret,omitempty"`
	Empty  *emptyDir    `yaml:"emptyDir,omitempty"`
}

type secretFiles struct {
	Name  string       `yaml:"secretName"`
	Mode  int          `yaml:"defaultMode"`
	Items []secretFile `yaml:"items"`
}

type secretFile struct {
	Key  string `yaml:"key"`
	Path string `yaml:"path"`
}

type claim struct {
	Name     string `yaml:"claimName"`
	ReadOnly bool   `yaml:"readOnly,omitempty"`
}

type emptyDir struct {
	Size string `yaml:"sizeLimit,omitempty"`
}

type volumeMount struct {
	Name     string `yaml:"name"`
	Path     string `yaml:"mountPath"`
	SubPath  string `yaml:"subPath,omitempty"`
	ReadOnly bool   `yaml:"readOnly,omitempty"`
}
