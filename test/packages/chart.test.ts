import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { BUILT_IN_PROVIDERS } from "../../src/config/models.ts";
import { checkConfig } from "./config-check.ts";
import { goTools } from "../../scripts/go-tools.ts";
import { kubernetesValidate, KUBERNETES_VERSIONS, root, run, tryRun } from "./tools.ts";

const chart = join(root, "deploy/helm/parley");
const EXAMPLES = ["replicas", "split", "small"] as const;
/** Variables of the built-in providers. */
const BUILT_IN = Object.keys(BUILT_IN_PROVIDERS).map((name) => ({
  key: `${name.toUpperCase()}_API_KEY`,
  baseUrl: `${name.toUpperCase()}_BASE_URL`,
}));
/** Values in JSON for `--set-json`: what a front does not have, with secrets, and settings that only a core can use. */
const SPLIT_WITH_ALL = {
  redis: { secret: "parley-redis" },
  secretEnv: {
    OPENAI_API_KEY: { secret: "parley-providers", key: "openai" },
    RESPONSES_KEY: { secret: "parley-keys", key: "responses" },
    CREDENTIALS_KEY: { secret: "parley-keys", key: "credentials" },
    LISTEN_URL: { secret: "parley-database", key: "listen" },
    ...Object.fromEntries(BUILT_IN.map(({ key }) => [key, { secret: "parley-providers", key }])),
  },
  env: {
    PARLEY_REDIS_TLS_CA_FILE: "/etc/company-ca/ca.pem",
    PARLEY_RESPONSES_STORE_DAYS: 30,
    PARLEY_OVERLOAD_MAX_CONNECTIONS: 1_000_000,
    ...Object.fromEntries(BUILT_IN.map(({ baseUrl }) => [baseUrl, "https://proxy.example.com"])),
  },
  config: {
    http: { public_url: "https://parley.example.com", tls: { client_ca_file: "/etc/company-ca/ca.pem" } },
    grpc: { tls: { client_ca_file: "/etc/company-ca/ca.pem" } },
    core: { tls: { server_name: "parley.example.com" } },
    access: { fronts: ["DNS:front.internal"] },
    database: { listen_url: "${LISTEN_URL}" },
    responses: { store_days: 30, encryption_key: "${RESPONSES_KEY}" },
    account_credentials: { encryption_key: "${CREDENTIALS_KEY}" },
    simulator: { enabled: false },
    providers: {
      openai: { preset: "openai", account_credentials: "allowed", headers: { "x-token": "${OPENAI_API_KEY}" } },
    },
    models: { gpt: { provider: "openai", upstream_model: "gpt-5.1" } },
  },
};
const NEWEST = KUBERNETES_VERSIONS.at(-1)!;

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: object };
}
interface Container {
  readonly args: readonly string[];
  readonly env: readonly Variable[];
  readonly securityContext: object;
  readonly ports?: readonly { readonly name: string }[];
  readonly readinessProbe?: object;
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template: {
      readonly metadata: {
        readonly labels: Readonly<Record<string, string>>;
        readonly annotations?: Readonly<Record<string, string>>;
      };
      readonly spec: {
        readonly containers: readonly Container[];
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: object;
        readonly automountServiceAccountToken: boolean;
      };
    };
  };
}

const folder = mkdtempSync(join(tmpdir(), "parley-chart-"));
let program: string;
let validator: string;
// Helm's first build takes minutes.
beforeAll(async () => {
  program = await goTools.helm();
  validator = kubernetesValidate();
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true }));

/** Flags for values, which replace those of the example. */
function withValues(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]);
}

function template(example: string, version: string = NEWEST, ...flags: readonly string[]) {
  const values = join(root, `deploy/helm/examples/${example}.yaml`);
  return tryRun(program, ["template", "gw", chart, "--kube-version", `${version}.0`, "-f", values, ...flags]);
}

function render(example: string, ...flags: readonly string[]): Manifest[] {
  const { stdout, stderr, status } = template(example, NEWEST, ...flags);
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

/** Deployments and Jobs, with the parley.yaml of each ("{}" without one). */
function podsOf(manifests: readonly Manifest[]) {
  return manifests.flatMap((manifest) => {
    if (manifest.spec?.template === undefined) return [];
    const { spec, metadata: podMetadata } = manifest.spec.template;
    const config = manifests.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === manifest.metadata.name,
    );
    return [
      {
        name: manifest.metadata.name,
        kind: manifest.kind,
        pod: spec,
        podMetadata,
        container: spec.containers[0]!,
        config: config?.data?.["parley.yaml"] ?? "{}",
      },
    ];
  });
}

/** The variables of the Dockerfile's image, and those of the container with secrets that fit their names. */
function environmentOf({ env }: Container): Record<string, string> {
  const secrets: Readonly<Record<string, string>> = {
    PARLEY_DATABASE_URL: "postgres://parley:a-long-password@postgres:5432/parley",
    PARLEY_REDIS_URL: "rediss://default:a-long-password@redis:6379",
    OPENAI_API_KEY: "a-long-enough-credential",
    LISTEN_URL: "postgres://parley:a-long-password@postgres:5433/parley",
    RESPONSES_KEY: Buffer.alloc(32, 1).toString("base64"),
    CREDENTIALS_KEY: Buffer.alloc(32, 2).toString("base64"),
    ...Object.fromEntries(BUILT_IN.map(({ key }) => [key, "a-long-enough-credential"])),
  };
  const image = { PARLEY_HTTP_LISTEN: "0.0.0.0:8080", PARLEY_HTTP_ALLOW_PUBLIC: "true" };
  return { ...image, ...Object.fromEntries(env.map(({ name, value }) => [name, value ?? secrets[name]!])) };
}

describe.each(EXAMPLES)("the chart with the values %s", (example) => {
  it.each(KUBERNETES_VERSIONS)("is valid for Kubernetes %s", (version) => {
    const { stdout, stderr, status } = template(example, version);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    const file = join(folder, `${example}-${version}.yaml`);
    writeFileSync(file, stdout);
    const report = run(validator, ["--strict", "-k", version, file]);
    const kinds = parseAllDocuments(stdout).filter((document) => document.toJS() !== null);
    expect(report.match(/ passed for resource /g)).toHaveLength(kinds.length);
  });

  it("gives each pod a configuration that Parley accepts", async () => {
    const pods = podsOf(render(example));
    expect(pods.length).toBeGreaterThan(0);
    for (const { config, container } of pods) {
      const { code, stderr } = await checkConfig(config, environmentOf(container));
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^(warning: .*\n)*$/) });
    }
  });

  it("has pods without rights, and time for preStop, delay and drain", () => {
    for (const { pod, container, kind } of podsOf(render(example))) {
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      if (kind !== "Deployment") continue;
      const env = environmentOf(container);
      const drainSeconds = (Number(env["PARLEY_SHUTDOWN_DELAY_MS"]) + Number(env["PARLEY_SHUTDOWN_DRAIN_MS"])) / 1000;
      const { seconds } = container.lifecycle!.preStop.sleep;
      expect(pod.terminationGracePeriodSeconds).toBe(seconds + drainSeconds + 30);
    }
  });

  it("passes Helm's lint", () => {
    const values = join(root, `deploy/helm/examples/${example}.yaml`);
    expect(run(program, ["lint", chart, "--strict", "--kube-version", `${NEWEST}.0`, "-f", values])).toContain(
      "0 chart(s) failed",
    );
  });
});

describe("the chart", () => {
  const kindsOf = (...args: Parameters<typeof render>): string[] =>
    render(...args).map(({ kind, metadata }) => `${kind} ${metadata.name}`);

  it("has for several replicas a budget for disruptions, scaling by calls in flight, a policy and a migration", () => {
    expect(kindsOf("replicas")).toEqual(
      expect.arrayContaining([
        "PodDisruptionBudget gw-parley-server",
        "HorizontalPodAutoscaler gw-parley-server",
        "NetworkPolicy gw-parley-server",
        "Job gw-parley-migrate",
      ]),
    );
    const scaler = render("replicas").find(({ kind }) => kind === "HorizontalPodAutoscaler");
    expect(scaler).toMatchObject({ spec: { metrics: [{ pods: { metric: { name: "parley_active_calls" } } }] } });
    expect(kindsOf("small").join()).not.toMatch(/Budget|Autoscaler|Job/);
  });

  it("gives fronts no secret and no provider", () => {
    const pods = podsOf(render("split"));
    const [front, core] = ["front", "core"].map((name) => pods.find((pod) => pod.name.endsWith(name))!);
    expect(front!.container.args).toEqual(["serve", "--role=front", "--core=dns:///gw-parley-core:50051"]);
    expect(front!.container.env.filter(({ valueFrom }) => valueFrom !== undefined)).toEqual([]);
    expect(front!.config).not.toContain("openai");
    expect(core!.container.env.filter(({ valueFrom }) => valueFrom !== undefined).map(({ name }) => name)).toEqual([
      "PARLEY_DATABASE_URL",
      "OPENAI_API_KEY",
    ]);
  });

  it("gives fronts no section and no variable that they cannot use, with every secret that cores have", async () => {
    const pods = podsOf(render("split", ...withValues(SPLIT_WITH_ALL)));
    const [front, core] = ["front", "core"].map((name) => pods.find((pod) => pod.name.endsWith(name))!);
    for (const { config, container } of [front!, core!]) {
      const { code, stderr } = await checkConfig(config, environmentOf(container));
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^(warning: .*\n)*$/) });
    }
    expect(front!.config).not.toContain("${");
    expect(environmentOf(front!.container)).toMatchObject({ PARLEY_OVERLOAD_MAX_CONNECTIONS: "1000000" });
    expect(core!.config).toContain("${RESPONSES_KEY}");
  });

  it("waits for three answers before a pod leaves its Services", () => {
    const pods = podsOf(render("replicas")).filter(({ kind }) => kind === "Deployment");
    for (const { container } of pods) expect(container.readinessProbe).toMatchObject({ failureThreshold: 3 });
  });

  it("places pods and the migration alike, and opens the network for it before it runs", () => {
    const placement = {
      nodeSelector: { pool: "gateways" },
      tolerations: [{ key: "gateways", operator: "Exists" }],
      affinity: { podAntiAffinity: {} },
    };
    const manifests = render("replicas", ...withValues(placement));
    const pods = podsOf(manifests);
    expect(pods.map(({ kind }) => kind).toSorted()).toEqual(["Deployment", "Job"]);
    for (const { pod } of pods) expect(pod).toMatchObject(placement);
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    const policy = policies.find(({ metadata }) => metadata.name === "gw-parley-migrate");
    const job = pods.find(({ kind }) => kind === "Job")!;
    expect(policy).toMatchObject({
      metadata: { annotations: { "helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "-1" } },
      spec: {
        podSelector: { matchLabels: job.podMetadata.labels },
        egress: [{ ports: [{ port: 53 }, { port: 53 }] }, { ports: expect.arrayContaining([{ port: 5432 }]) }],
      },
    });
    expect(render("replicas", "--set", "networkPolicy.enabled=false").map(({ kind }) => kind)).not.toContain(
      "NetworkPolicy",
    );
  });

  it("has a PodMonitor on request, whose job is parley, in place of annotations", () => {
    expect(podsOf(render("split"))[0]!.podMetadata.annotations).toHaveProperty(["prometheus.io/scrape"], "true");
    expect(kindsOf("split").join()).not.toContain("PodMonitor");
    const tlsConfig = { ca: { secret: { name: "parley-tls", key: "ca.crt" } }, serverName: "parley.example.com" };
    const podMonitor = { enabled: true, labels: { release: "prometheus" }, tlsConfig };
    const manifests = render("split", ...withValues({ podMonitor }));
    const { metadata, spec } = manifests.find(({ kind }) => kind === "PodMonitor") as unknown as {
      readonly metadata: object;
      readonly spec: {
        readonly jobLabel: string;
        readonly selector: {
          readonly matchLabels: object;
          readonly matchExpressions: readonly { readonly key: string; readonly values: readonly string[] }[];
        };
        readonly podMetricsEndpoints: readonly { readonly port: string }[];
      };
    };
    expect(metadata).toMatchObject({ labels: { release: "prometheus" } });
    expect(spec.podMetricsEndpoints).toMatchObject([{ scheme: "https", path: "/metrics", tlsConfig }]);
    const [{ key, values }] = spec.selector.matchExpressions as [{ key: string; values: readonly string[] }];
    const pods = podsOf(manifests);
    expect(pods.filter(({ podMetadata: { labels } }) => values.includes(labels[key]!))).toHaveLength(2);
    for (const { podMetadata, container } of pods.filter(({ kind }) => kind === "Deployment")) {
      expect(podMetadata.labels).toMatchObject({ ...spec.selector.matchLabels, [spec.jobLabel]: "parley" });
      expect(container.ports!.map(({ name }) => name)).toContain(spec.podMetricsEndpoints[0]!.port);
      expect(podMetadata.annotations).not.toHaveProperty(["prometheus.io/scrape"]);
    }
  });

  it("can keep callers' addresses at a load balancer", () => {
    const service = (...flags: readonly string[]) =>
      render("replicas", ...flags).find(({ kind }) => kind === "Service")!.spec;
    expect(service()).not.toHaveProperty("externalTrafficPolicy");
    expect(service("--set", "service.type=LoadBalancer")).toMatchObject({ externalTrafficPolicy: "Cluster" });
    expect(service(...withValues({ service: { type: "LoadBalancer", externalTrafficPolicy: "Local" } }))).toMatchObject(
      { externalTrafficPolicy: "Local" },
    );
  });

  const variable = "write ${NAME}, with NAME in secretEnv";
  it.each([
    ["env.PARLEY_DATABASE_LISTEN_URL", "postgres://a:b@c/d", "use secretEnv.PARLEY_DATABASE_LISTEN_URL"],
    ["env.PARLEY_RESPONSES_ENCRYPTION_KEY", "x", "use secretEnv.PARLEY_RESPONSES_ENCRYPTION_KEY"],
    ["env.PARLEY_ACCOUNT_CREDENTIALS_ENCRYPTION_KEY", "x", "use secretEnv.PARLEY_ACCOUNT_CREDENTIALS_ENCRYPTION_KEY"],
    ["env.OPENAI_API_KEY", "x", "use secretEnv.OPENAI_API_KEY"],
    ["env.AWS_SESSION_TOKEN", "x", "use secretEnv.AWS_SESSION_TOKEN"],
    ["env.OTEL_EXPORTER_OTLP_HEADERS", "authorization=x", "use secretEnv.OTEL_EXPORTER_OTLP_HEADERS"],
    ["env.OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x=y", "use secretEnv.OTEL_EXPORTER_OTLP_METRICS_HEADERS"],
    ["env.HTTPS_PROXY", "http://a:b@proxy:3128", "use secretEnv.HTTPS_PROXY"],
    ["env.HTTP_PROXY", "a:b@proxy:3128", "use secretEnv.HTTP_PROXY"],
    ["env.OTEL_EXPORTER_OTLP_ENDPOINT", "https://a:b@c", "use secretEnv.OTEL_EXPORTER_OTLP_ENDPOINT"],
    ["config.database.url", "postgres://a:b@c/d", "use database.secret"],
    ["config.database.listen_url", "postgres://a:b@c/d", variable],
    ["config.redis.url", "redis://:b@c", "use redis.secret"],
    ["config.redis.sentinel.password", "x", variable],
    ["config.responses.encryption_key", "x", variable],
    ["config.account_credentials.encryption_key", "x", variable],
    ["config.outage.encryption_key", "x", variable],
    ["config.providers.openai.api_keys", ["${A}", "x"], variable],
    ["config.providers.openai.headers.x-token", "x", variable],
    ["config.providers.openai.proxy", "http://a:b@c:3128", variable],
  ])("refuses a secret in plain text: %s", (path, value, remedy) => {
    const { status, stderr } = template("replicas", NEWEST, ...withValues({ [path]: value }));
    expect(status).not.toBe(0);
    expect(stderr).toMatch(new RegExp(`${path.replaceAll(".", "\\.")} would (show|be in)`));
    expect(stderr).toContain(remedy);
    expect(stderr).not.toContain("a:b");
  });

  it("takes settings that are no secret, and files with keys", () => {
    const values = {
      "env.PARLEY_DATABASE_LISTEN_URL": "none",
      "env.HTTPS_PROXY": "http://proxy.example.com:3128",
      "env.PARLEY_HTTP_TLS_KEY_FILE": "/etc/tls/key.pem",
      "config.database.listen_url": "none",
      "config.providers.openai.api_keys": ["file:/run/secrets/openai"],
      "config.providers.openai.headers": { "x-title": "Parley", "x-token": "${TOKEN}" },
      "config.providers.openai.proxy": "http://proxy:3128",
    };
    expect(template("replicas", NEWEST, ...withValues(values))).toMatchObject({ status: 0, stderr: "" });
  });

  const clientCa = { client_ca_file: "/etc/company-ca/ca.pem" };
  it("takes client certificates of the operations port where probes need none", () => {
    const tls = { ...clientCa, client_certificates: "optional" };
    expect(template("split", NEWEST, ...withValues({ "config.operations": { tls } })).status).toBe(0);
  });

  it.each([
    ["small", ["--set", "server.replicas=2"], "several pods need PostgreSQL"],
    ["small", ["--set", "persistence.claim="], "set persistence.claim, or it is lost with the pod"],
    ["replicas", ["--set", "persistence.claim=x"], "several pods cannot share persistence.claim"],
    ["split", ["--set", "config.core.tls.server_name="], "set config.core.tls.server_name"],
    ["replicas", ["--set", "image.repository="], "image.repository is missing"],
    ["replicas", ["--set", "env.PARLEY_REDIS_URL=redis://x"], "use database.secret or redis.secret"],
    ["split", withValues({ "config.operations": { tls: clientCa } }), "the kubelet's probes have none: leave it out"],
    ["split", ["--set", "env.PARLEY_OPERATIONS_TLS_CLIENT_CA_FILE=/ca.pem"], "the kubelet's probes have none"],
    ["small", ["--set", "config.operations.tls.cert_file=/tls.crt"], "probes would use http: set tls.secret"],
    [
      "small",
      ["--set", "config.http.grpc=true"],
      "http.grpc would leave the Service's port of gRPC without a listener",
    ],
    ["split", ["--set", "podMonitor.enabled=true"], "with tls.secret, set podMonitor.tlsConfig"],
    ["replicas", ["--set", "service.externalTrafficPolicy=local"], "must be one of 'Cluster', 'Local'"],
    ["replicas", ["--set", "replicas=4"], "additional properties 'replicas' not allowed"],
    ["replicas", ["--kube-version", "1.29.0"], "chart requires kubeVersion"],
  ])("refuses values that do not fit, with the reason: %s %j", (example, flags, reason) => {
    const { status, stderr } = template(example, NEWEST, ...flags);
    expect(status).not.toBe(0);
    expect(stderr).toContain(reason);
  });
});
