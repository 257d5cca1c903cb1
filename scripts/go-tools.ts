// Programs that tests need and only Go's module proxy has. Each is built once in a clone; needs Go from 1.26 on.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const CACHE = join(import.meta.dirname, "../node_modules/.cache/go");

/** Version of the OpenTelemetry Collector; its stable modules have numbers of their own. */
const COLLECTOR = "v0.165.0";
const COLLECTOR_STABLE = "v1.71.0";
const COLLECTOR_BUILDER = `go.opentelemetry.io/collector/cmd/builder@${COLLECTOR}`;
const COLLECTOR_PARTS = {
  receivers: [{ gomod: `go.opentelemetry.io/collector/receiver/otlpreceiver ${COLLECTOR}` }],
  exporters: [{ gomod: `go.opentelemetry.io/collector/exporter/otlphttpexporter ${COLLECTOR}` }],
  providers: [{ gomod: `go.opentelemetry.io/collector/confmap/provider/fileprovider ${COLLECTOR_STABLE}` }],
  conf_resolver: { default_uri_scheme: "file" },
};

/**
 * Functions that build a program, if it is not built yet, and return its path: Helm, Docker Compose's own reader of compose
 * files (scripts/packages/compose), Litestream (docs/operations/backup.md), a server with S3's API, the OpenTelemetry
 * Collector.
 */
export const goTools = {
  helm: () => install("helm.sh/helm/v3/cmd/helm@v3.19.2"),
  // Its source is in this project, and may have changed.
  composeReader: () =>
    build("compose", (program) =>
      run("go", ["build", "-o", program, "."], { cwd: join(import.meta.dirname, "packages/compose") }),
    ),
  litestream: () => install("github.com/benbjohnson/litestream/cmd/litestream@v0.5.18"),
  s3Server: () => install("github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0"),
  async collector() {
    const builder = await install(COLLECTOR_BUILDER);
    return buildOnce(`collector@${COLLECTOR}/collector`, async (program) => {
      const folder = join(program, "..");
      const manifest = join(folder, "manifest.yaml");
      // YAML accepts JSON.
      writeFileSync(manifest, JSON.stringify({ dist: { name: "collector", output_path: folder }, ...COLLECTOR_PARTS }));
      await run(builder, ["--config", manifest]);
    });
  },
} satisfies Record<string, () => Promise<string>>;

/** Path of the program of a module, such as `example.org/cmd/name@v1.0.0`. */
function install(module: string): Promise<string> {
  const [path, version] = module.split("@") as [string, string];
  const name = path.slice(path.lastIndexOf("/") + 1);
  return buildOnce(`${name}@${version}/${name}`, (program) =>
    run("go", ["install", module], { env: { ...process.env, GOBIN: join(program, ".."), GOFLAGS: "-mod=mod" } }),
  );
}

async function buildOnce(path: string, make: (program: string) => Promise<unknown>): Promise<string> {
  const program = join(CACHE, path);
  return existsSync(program) ? program : build(path, make);
}

async function build(path: string, make: (program: string) => Promise<unknown>): Promise<string> {
  const program = join(CACHE, path);
  mkdirSync(join(program, ".."), { recursive: true });
  try {
    await make(program);
  } catch (cause) {
    throw new Error(`${path} could not be built: it needs Go from 1.26 on and Go's module proxy`, { cause });
  }
  return program;
}
