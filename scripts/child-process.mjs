// Runs one command in the foreground so that npm, a shell or a supervisor can end it. Runs on any Node >= 18.
import { spawn } from "node:child_process";
import { constants } from "node:os";

const isWindows = process.platform === "win32";
const forwardedSignals = ["SIGINT", "SIGTERM", "SIGHUP"];
const parentPollMs = 250;
/** Ctrl-C in a terminal arrives twice, from the terminal and from npm: within this time it counts once. */
const sameSignalMs = 250;

/**
 * Runs a command with inherited input and output. Resolves with its exit code, or 128 plus the number of the signal that
 * ended it. Signals are forwarded to the command. It runs in its own process group, so that it gets each of them once,
 * and not a second time from the terminal (which many programs read as "quit at once").
 *
 * When npm, the parent, is killed, no signal arrives: the parent is polled, and the command gets SIGTERM. Without npm,
 * the command may outlive its parent.
 */
export function runCommand(command, args, { cwd } = {}) {
  const isScript = isWindows && !command.endsWith(".exe");
  const child = spawn(command, args, { cwd, stdio: "inherit", detached: !isWindows, shell: isScript });
  const sentAt = new Map();
  const forward = (signal) => {
    const now = performance.now();
    if (now - (sentAt.get(signal) ?? -Infinity) < sameSignalMs) return;
    sentAt.set(signal, now);
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    if (isWindows) child.kill(signal);
    else process.kill(-child.pid, signal);
  };
  for (const signal of forwardedSignals) process.on(signal, forward);

  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.env.npm_lifecycle_event === undefined || process.ppid === parent) return;
    clearInterval(watch);
    forward("SIGTERM");
  }, parentPollMs).unref();

  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  }).finally(() => {
    clearInterval(watch);
    for (const signal of forwardedSignals) process.off(signal, forward);
  });
}
