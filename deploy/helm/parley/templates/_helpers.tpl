{{- define "parley.name" -}}
{{- if contains "parley" .Release.Name }}{{ .Release.Name | trunc 50 }}{{ else }}{{ printf "%s-parley" (.Release.Name | trunc 43) }}{{ end }}
{{- end }}

{{- define "parley.labels" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Labels of the pods of one component: (list $ "core"). */}}
{{- define "parley.selector" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "parley.image" -}}
{{- $repository := required "image.repository is missing: where is the image of the Dockerfile?" .Values.image.repository -}}
{{- if .Values.image.digest }}{{ $repository }}@{{ .Values.image.digest }}{{ else }}{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "parley.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "parley.name" .) }}
{{- end }}

{{/* The components as JSON: the pods that serve callers, and those that keep the database and the providers' keys. */}}
{{- define "parley.components" -}}
{{ ternary (list "server") (list "front" "core") (eq .Values.roles "all") | toJson }}
{{- end }}

{{/* parley.yaml of a component. Fronts have no providers, and no secrets of theirs. */}}
{{- define "parley.config" -}}
{{- $config := index . 0 -}}
{{- if eq (index . 1) "front" }}{{ $config = omit $config "providers" "models" "aliases" }}{{ end -}}
{{ toYaml $config }}
{{- end }}

{{- define "parley.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "parley.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "parley.fromSecret" -}}
- name: {{ index . 0 }}
  valueFrom: { secretKeyRef: { name: {{ (index . 1).secret | quote }}, key: {{ (index . 1).key | quote }} } }
{{- end }}
