import { runCli } from "./cli/cli.ts";
import { loadConfig, processEnvironment } from "./config/load.ts";
import { serve } from "./gateway/serve.ts";

/** Flags that mean the program, not the server. */
const PROGRAM_FLAGS: ReadonlySet<string> = new Set(["-h", "--help", "-v", "--version"]);

/** Without a command the program serves: `npm start`, `npm start -- --config parley.yaml`. */
function withDefaultCommand(argv: readonly string[]): readonly string[] {
  const [first = "--"] = argv;
  return first.startsWith("-") && !PROGRAM_FLAGS.has(first) ? ["serve", ...argv] : argv;
}

const env = processEnvironment();
const { stdout, stderr } = process;
process.exitCode = await runCli(withDefaultCommand(process.argv.slice(2)), {
  env,
  stdout,
  stderr,
  serve: (config, role) => serve(config, { stdout, role, reread: () => loadConfig({ file: config.file, env }) }),
});
