{{- define "instar.name" -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "instar.selector" -}}
app.kubernetes.io/name: instar
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "instar.labels" -}}
{{ include "instar.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "instar.storage" -}}
{{ .Values.storage | default "sqlite:/data/instar.db" }}
{{- end }}
