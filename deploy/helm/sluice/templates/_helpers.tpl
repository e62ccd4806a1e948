{{- define "sluice.name" -}}
{{- if contains "sluice" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-sluice" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* Labels of a component: (dict "root" $ "component" "portal"). */ -}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "sluice.image" -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default "latest" }}{{ end }}
{{- end }}

{{- /* What every pod of ours pulls its images with. */ -}}
{{- define "sluice.pullSecrets" -}}
{{- $secrets := list }}
{{- range .Values.imagePullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end }}
{{- $secrets | toJson }}
{{- end }}

{{- /* Whether the chart brings the database. */ -}}
{{- define "sluice.ownDatabase" -}}
{{- if and .Values.postgres.enabled (not .Values.database.existingSecret) }}yes{{ end }}
{{- end }}

{{- define "sluice.databaseSecret" -}}
{{- if .Values.database.existingSecret }}{{ .Values.database.existingSecret }}{{ else if .Values.postgres.enabled }}{{ include "sluice.name" . }}-postgres{{ else }}{{ fail "Sluice needs a database: set database.existingSecret, or postgres.enabled for a trial" }}{{ end }}
{{- end }}

{{- define "sluice.keysSecret" -}}
{{- .Values.keys.existingSecret | default (printf "%s-keys" (include "sluice.name" .)) }}
{{- end }}

{{- define "sluice.brokerTlsSecret" -}}
{{- .Values.broker.tls.existingSecret | default (printf "%s-broker-tls" (include "sluice.name" .)) }}
{{- end }}

{{- /* The service at which the cluster asks the broker: Prometheus, and its API server. No workspace and no GPU server does. */ -}}
{{- define "sluice.brokerInternal" -}}
{{- include "sluice.name" . }}-internal
{{- end }}

{{- define "sluice.brokerInternalTlsSecret" -}}
{{- .Values.broker.internal.tls.existingSecret | default (printf "%s-tls" (include "sluice.brokerInternal" .)) }}
{{- end }}

{{- /* Whether somebody else than the world vouches for the broker: ca.crt of the settings says who. */ -}}
{{- define "sluice.hasAuthority" -}}
{{- if or (not .Values.broker.tls.existingSecret) .Values.workspaces.certificateAuthority }}yes{{ end }}
{{- end }}

{{- define "sluice.brokerUrl" -}}
{{- .Values.broker.url | default (printf "https://%s-broker.%s.svc:%v" (include "sluice.name" .) .Release.Namespace .Values.broker.service.port) }}
{{- end }}

{{- /* The host of an address, without its port. */ -}}
{{- define "sluice.hostOf" -}}
{{- regexReplaceAll ":[0-9]+$" (urlParse .).host "" }}
{{- end }}

{{- /* Where the portal asks the gateway how it is: its public address may lead nowhere from inside the cluster. */ -}}
{{- define "sluice.gatewayInternalUrl" -}}
{{- printf "http://%s-gateway.%s.svc:%v" (include "sluice.name" .) .Release.Namespace .Values.gateway.service.port }}
{{- end }}

{{- /* What a process needs that asks the database alone. */ -}}
{{- define "sluice.databaseEnvironment" -}}
- name: DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ include "sluice.databaseSecret" . }}, key: url } }
{{- if or (include "sluice.hasAuthority" .) .Values.certificateAuthorities }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/sluice/trusted.crt }
{{- end }}
{{- end }}

{{- /* Keys of the installation, for the process that uses them: (dict "root" $ "keys" (list "auth-secret" …)). */ -}}
{{- define "sluice.keys" -}}
{{- range .keys }}
- name: SLUICE_{{ . | upper | replace "-" "_" }}
  valueFrom: { secretKeyRef: { name: {{ include "sluice.keysSecret" $.root }}, key: {{ . }} } }
{{- end }}
{{- end }}

{{- /* What every process of the control plane knows. None of it is a secret but the way to the database. */ -}}
{{- define "sluice.environment" -}}
{{- include "sluice.databaseEnvironment" . }}
- { name: SLUICE_PORTAL_URL, value: {{ required "portal.url is the address that people type" .Values.portal.url | quote }} }
- { name: SLUICE_PROXY_HOPS, value: {{ .Values.portal.proxyHops | quote }} }
- { name: SLUICE_GATEWAY_URL, value: {{ required "gateway.url is the address of notebooks without their ids" .Values.gateway.url | quote }} }
- { name: SLUICE_GATEWAY_HOST, value: {{ required "gateway.host is what comes after a workspace's id" .Values.gateway.host | quote }} }
- { name: SLUICE_BROKER_URL, value: {{ include "sluice.brokerUrl" . | quote }} }
- { name: SLUICE_TIME_ZONE, value: {{ .Values.timeZone | quote }} }
- { name: SLUICE_LAUNCHERS, value: kubernetes }
- { name: SLUICE_KUBERNETES_SETTINGS, value: /etc/sluice/kubernetes.json }
{{- if .Values.oidc.issuer }}
- { name: SLUICE_OIDC_ISSUER, value: {{ .Values.oidc.issuer | quote }} }
- { name: SLUICE_OIDC_NAME, value: {{ .Values.oidc.name | quote }} }
- { name: SLUICE_OIDC_TRUST_EMAIL, value: {{ ternary "1" "0" .Values.oidc.trustEmail | quote }} }
{{- end }}
{{- range $variable, $value := .Values.settings }}
- { name: {{ $variable }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- /* On which nodes a pod of the control plane may run, and before whom: (dict "root" $ "values" .Values.portal). */ -}}
{{- define "sluice.placement" -}}
{{- $placement := dict }}
{{- range list .root.Values.placement (.values.placement | default dict) }}
{{- range $name, $value := . }}{{ $_ := set $placement $name $value }}{{ end }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with get $placement $name }}
{{ $name }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sluice.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* What containers of the control plane mount, and where it comes from. */ -}}
{{- define "sluice.mounts" -}}
- { name: tmp, mountPath: /tmp }
- { name: settings, mountPath: /etc/sluice, readOnly: true }
{{- end }}
{{- define "sluice.volumes" -}}
- { name: tmp, emptyDir: {} }
- { name: settings, configMap: { name: {{ include "sluice.name" . }}-settings } }
{{- end }}

{{- /* A deployment, its service and its disruption budget:
       (dict "root" $ "component" … "values" … "program" … "port" … "scheme" … "keys" … "environment" … "mounts" … "volumes" … "account" …
        "internalPort" … (what is asked by the cluster and by nobody else, at a service of its own),
        "drainSeconds" (so long a pod goes on when it has been taken out of the service)). */ -}}
{{- define "sluice.deployment" -}}
{{- $name := printf "%s-%s" (include "sluice.name" .root) .component }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector: { matchLabels: {{ include "sluice.selector" . | fromYaml | toJson }} }
  strategy: { type: RollingUpdate, rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }
  template:
    metadata:
      labels: {{- include "sluice.labels" . | nindent 8 }}
      annotations:
        # New settings mean new pods.
        checksum/settings: {{ .root.Values | toJson | sha256sum }}
    spec:
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: {{ eq .component "broker" }}
      enableServiceLinks: false
      {{- with include "sluice.placement" . | trim }}{{ . | nindent 6 }}{{ end }}
      {{- with .root.Values.placement.spreadOver }}
      topologySpreadConstraints:
        {{- range . }}
        # Of one version alone: while it is replaced, the other one's pods are no reason to stay away from a node.
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: { matchLabels: {{ include "sluice.selector" $ | fromYaml | toJson }} }
          matchLabelKeys: [pod-template-hash]
        {{- end }}
      {{- end }}
      terminationGracePeriodSeconds: {{ add 15 .drainSeconds }}
      securityContext: {{- include "sluice.podSecurity" .root | nindent 8 }}
      imagePullSecrets: {{ include "sluice.pullSecrets" .root }}
      initContainers:
        - name: wait-for-database
          image: {{ include "sluice.image" .root.Values.images.controlPlane }}
          imagePullPolicy: {{ .root.Values.images.controlPlane.pullPolicy }}
          args: [server/install/main.ts, wait]
          env: {{- include "sluice.databaseEnvironment" .root | nindent 12 }}
          securityContext: {{- include "sluice.containerSecurity" .root | nindent 12 }}
          resources: { requests: { cpu: 50m, memory: 128Mi }, limits: { memory: 512Mi } }
          volumeMounts: {{- include "sluice.mounts" .root | nindent 12 }}
      containers:
        - name: {{ .component }}
          image: {{ include "sluice.image" .root.Values.images.controlPlane }}
          imagePullPolicy: {{ .root.Values.images.controlPlane.pullPolicy }}
          args: {{ .program | toJson }}
          env: {{- include "sluice.environment" .root | nindent 12 }}
            {{- with include "sluice.keys" . | trim }}{{ . | nindent 12 }}{{ end }}
            {{- with .environment }}{{ . | nindent 12 }}{{ end }}
          ports:
            - { name: main, containerPort: {{ .port }} }
            {{- with .internalPort }}
            - { name: internal, containerPort: {{ . }} }
            {{- end }}
          securityContext: {{- include "sluice.containerSecurity" .root | nindent 12 }}
          resources: {{ .values.resources | toJson }}
          startupProbe: { httpGet: { path: /healthz, port: main, scheme: {{ .scheme }} }, periodSeconds: 1, failureThreshold: 120 }
          readinessProbe: { httpGet: { path: /healthz, port: main, scheme: {{ .scheme }} }, periodSeconds: 5, timeoutSeconds: 5 }
          livenessProbe: { tcpSocket: { port: main }, periodSeconds: 20, failureThreshold: 6 }
          {{- with .drainSeconds }}
          # Out of the service first, so that nobody new comes.
          lifecycle: { preStop: { sleep: { seconds: {{ . }} } } }
          {{- end }}
          volumeMounts: {{- include "sluice.mounts" .root | nindent 12 }}
            {{- with .mounts }}{{ . | nindent 12 }}{{ end }}
      volumes: {{- include "sluice.volumes" .root | nindent 8 }}
        {{- with .volumes }}{{ . | nindent 8 }}{{ end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  type: {{ .values.service.type }}
  {{- with .values.service.clusterIP }}
  clusterIP: {{ . }}
  {{- end }}
  selector: {{- include "sluice.selector" . | nindent 4 }}
  ports:
    - { name: main, port: {{ .values.service.port }}, targetPort: main }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector: { matchLabels: {{ include "sluice.selector" . | fromYaml | toJson }} }
{{- end }}
