import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { checkConfig } from "./config-check.ts";
import { helm, kubernetesValidate, KUBERNETES_VERSIONS, root, run, tryRun } from "./tools.ts";

const chart = join(root, "deploy/helm/parley");
const EXAMPLES = ["replicas", "split", "small"] as const;
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
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template: {
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
beforeAll(() => {
  program = helm();
  validator = kubernetesValidate();
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true }));

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
    const { spec } = manifest.spec.template;
    const config = manifests.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === manifest.metadata.name,
    );
    return [
      {
        name: manifest.metadata.name,
        kind: manifest.kind,
        pod: spec,
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
    PARLEY_REDIS_URL: "redis://default:a-long-password@redis:6379",
    OPENAI_API_KEY: "a-long-enough-credential",
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
      expect({ code, stderr: stderr.replaceAll(/^.*warning.*$/gim, "") }).toMatchObject({ code: 0 });
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

  it.each([
    ["small", ["--set", "server.replicas=2"], "several pods need PostgreSQL"],
    ["small", ["--set", "persistence.claim="], "set persistence.claim, or it is lost with the pod"],
    ["replicas", ["--set", "persistence.claim=x"], "several pods cannot share persistence.claim"],
    ["split", ["--set", "config.core.tls.server_name="], "set config.core.tls.server_name"],
    ["replicas", ["--set", "image.repository="], "image.repository is missing"],
    ["replicas", ["--set", "env.PARLEY_REDIS_URL=redis://x"], "use database.secret or redis.secret"],
    ["replicas", ["--set", "replicas=4"], "additional properties 'replicas' not allowed"],
    ["replicas", ["--kube-version", "1.29.0"], "chart requires kubeVersion"],
  ])("refuses values that do not fit, with the reason: %s %j", (example, flags, reason) => {
    const { status, stderr } = template(example, NEWEST, ...flags);
    expect(status).not.toBe(0);
    expect(stderr).toContain(reason);
  });
});
