import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/**
 * Whether file systems can be mounted, which needs root. Always true in CI, so that these tests fail there rather than
 * being skipped.
 */
export const MAY_MOUNT = process.getuid?.() === 0 || process.env["CI"] !== undefined;

/** A small file system of its own. */
export interface SmallDisk {
  /** Takes all of its free space. */
  fill(): void;
  /** Frees what `fill` has taken. */
  free(): void;
  unmount(): void;
}

/** Mounts a file system in memory at a directory, which is created. */
export function mountDisk(path: string, bytes: number): SmallDisk {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "tmpfs", path]);
  const filler = join(path, "filler");
  return {
    fill() {
      const file = openSync(filler, "a");
      try {
        for (const block = Buffer.alloc(4_096, 1); ;) writeSync(file, block);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler),
    unmount: () => void execFileSync("umount", [path]),
  };
}
