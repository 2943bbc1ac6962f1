package jobcheck

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"
)

// decode reads a document strictly, fills in what the server does, gives it the defaults, and
// converts it to the server's own type.
func decode(doc []byte, given, internal runtime.Object, fill func()) error {
	if err := yaml.UnmarshalStrict(doc, given); err != nil {
		return err
	}
	fill()
	legacyscheme.Scheme.Default(given)
	return legacyscheme.Scheme.Convert(given, internal, nil)
}

func selectorOf(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}
