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

{{/* The components as JSON: server, or front (serves HTTP) and core (has the database and the providers' keys). */}}
{{- define "parley.components" -}}
{{ ternary (list "server") (list "front" "core") (eq .Values.roles "all") | toJson }}
{{- end }}

{{/* Sections of parley.yaml that fronts do not use, as JSON: those of the database, of providers, and with secrets. */}}
{{- define "parley.coreSections" -}}
{{ list "providers" "models" "aliases" "database" "outage" "redis" "responses" "account_credentials" "simulator" | toJson }}
{{- end }}

{{/* parley.yaml of a component: (list $config "front"). */}}
{{- define "parley.config" -}}
{{- $config := index . 0 -}}
{{- if eq (index . 1) "front" -}}
{{- range $section := include "parley.coreSections" . | fromJsonArray }}{{ $config = omit $config $section }}{{ end -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{/* Pattern of variables for sections that fronts do not use. */}}
{{- define "parley.coreVariables" -}}
^PARLEY_({{ include "parley.coreSections" . | fromJsonArray | join "|" | upper }})_|^(ALPHA|BETA|GAMMA)_BASE_URL$
{{- end }}

{{/* "true" for a literal text in the values, empty for one with ${NAME}. */}}
{{- define "parley.isLiteral" -}}
{{- if and (kindIs "string" .) (ne . "") (not (contains "${" .)) }}true{{ end -}}
{{- end }}

{{/* Scheduling of pods: nodeSelector, tolerations and affinity of their spec. */}}
{{- define "parley.placement" -}}
{{- with pick .Values "nodeSelector" "tolerations" "affinity" -}}
{{- range $key, $value := . }}{{ if $value }}{{ toYaml (dict $key $value) }}
{{ end }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Egress of pods with credentials. */}}
{{- define "parley.egress" -}}
- ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
- ports:
    {{- range .Values.networkPolicy.egressPorts }}
    - { port: {{ . }} }
    {{- end }}
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
