// Running one command in the foreground so that npm, a shell or a supervisor can end it. Runs on any Node >= 18.
import { spawn } from "node:child_process";
import { constants } from "node:os";

const isWindows = process.platform === "win32";
const forwardedSignals = ["SIGINT", "SIGTERM", "SIGHUP"];
const parentPollMs = 250;
/** Ctrl-C in a terminal reaches us twice, from the terminal and from npm: within this time it is one key press. */
const sameSignalMs = 250;

/**
 * Runs a command with our own input and output and gives its exit status: its own, or 128 plus the number of the
 * signal that ended it. Signals that we get go to the command. It runs in a process group of its own, so that it gets
 * each of them from us, once, and not a second time from the terminal (many programs read that as "quit at once").
 *
 * When npm is killed we are orphaned without being told. Then the command gets SIGTERM, to end in its own time.
 *
 * @param {string} command a program's name or path
 * @param {string[]} args
 * @param {{ cwd?: string }} [options]
 * @returns {Promise<number>}
 */
export function runCommand(command, args, { cwd } = {}) {
  const isScript = isWindows && !command.endsWith(".exe");
  const child = spawn(command, args, { cwd, stdio: "inherit", detached: !isWindows, shell: isScript });

  const send = (signal) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    if (isWindows) child.kill(signal);
    else process.kill(-child.pid, signal);
  };
  const lastSentAt = new Map();
  const forward = (signal) => {
    const now = performance.now();
    if (now - (lastSentAt.get(signal) ?? -Infinity) < sameSignalMs) return;
    lastSentAt.set(signal, now);
    send(signal);
  };
  for (const signal of forwardedSignals) process.on(signal, forward);
  const parentWatch = watchParent(() => forward("SIGTERM"));

  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  }).finally(() => {
    clearInterval(parentWatch);
    for (const signal of forwardedSignals) process.off(signal, forward);
  });
}

/** Calls back once when npm, which started us, is gone. Without npm, outliving a parent may be what the user wants. */
function watchParent(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onGone();
  }, parentPollMs);
  return timer.unref();
}
