import { runCli } from "./cli/cli.ts";
import { EXIT } from "./cli/command.ts";
import { readSourceFor } from "./cli/serve-command.ts";
import { forTerminal } from "./cli/terminal.ts";
import { processEnvironment } from "./config/load.ts";

/** Flags that mean the program, not the server. */
const PROGRAM_FLAGS: ReadonlySet<string> = new Set(["-h", "--help", "-v", "--version"]);

/** Without a command the program serves: `npm start`, `npm start -- --config parley.yaml`. */
function withDefaultCommand(argv: readonly string[]): readonly string[] {
  const [first = "--"] = argv;
  return first.startsWith("-") && !PROGRAM_FLAGS.has(first) ? ["serve", ...argv] : argv;
}

/** Ends a command whose output cannot be written: silently when its reader has ended, such as `head`. */
function endCommand({ code, message }: NodeJS.ErrnoException): void {
  if (code !== "EPIPE") process.stderr.write(`parley: the output cannot be written: ${message}\n`);
  process.exit(EXIT.failed);
}

/** A function, because the built program is CommonJS, where nothing is awaited outside one. */
async function main(): Promise<void> {
  const env = processEnvironment();
  const { stdout, stderr } = process;
  stdout.on("error", endCommand);
  stderr.on("error", () => undefined);
  process.exitCode = await runCli(withDefaultCommand(process.argv.slice(2)), {
    env,
    stdout: forTerminal(stdout),
    stderr: forTerminal(stderr),
    async serve(source, role) {
      // The gateway serves without a reader of its greeting.
      stdout.off("error", endCommand).on("error", () => undefined);
      // Most of the program, which no other command waits for.
      const { serve } = await import("./cli/serve.ts");
      const code = await serve(source, {
        stdout,
        isTerminal: stdout.isTTY,
        role,
        reread: () => readSourceFor(role, { file: source.file, env }),
      });
      // All is closed. A request that the exporter of traces has given up on would hold the process until its time limit.
      return process.exit(code);
    },
  });
}

void main();
