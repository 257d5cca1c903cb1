// npm run test:packages: the image, the chart, the compose file and the unit, checked without a container runtime and without
// a cluster. Needs root, debootstrap, buildah, bubblewrap, caddy, systemd-analyze, Go, Python and their package registries.
import { runTests } from "./run-tests.ts";

await runTests(["--config", "vitest.packages.config.ts", ...process.argv.slice(2)]);
