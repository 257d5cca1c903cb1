// Flags and environment of Node for the program, in whatever way it is started. Runs on any Node >= 18, without
// dependencies; it is also part of the single executable.
import os from "node:os";

/** V8's default number of threads for garbage collection and compilers. */
const USUAL_V8_THREADS = 4;

const MIB = 1024 * 1024;

/** Least limit of its old generation that V8 chooses by itself. */
const LEAST_HEAP_BYTES = 256 * MIB;

/**
 * Limits V8's old generation to a third of a container's memory (in bytes; 0: not limited) where V8 would let it have more than half,
 * unless Node's options have a limit: in a container of 256 MiB V8 would let garbage fill all of it.
 */
export const heapFlags = (
  memoryBytes = process.constrainedMemory?.() ?? 0,
  options = process.env.NODE_OPTIONS ?? "",
) => {
  const isSmall = memoryBytes > 0 && memoryBytes < 2 * LEAST_HEAP_BYTES;
  if (!isSmall || /--max[-_](old[-_]space|heap)[-_]size/.test(options)) return [];
  return [`--max-old-space-size=${Math.floor(memoryBytes / 3 / MIB)}`];
};

/** Flags of Node for the program. `processors` is the number that it may use (unknown before Node 18.14). */
export const programFlags = (processors = os.availableParallelism?.() ?? os.cpus().length) => [
  // V8's middle compiler compiles all warm functions at once, and its memory is not returned. Without it requests cost
  // the same.
  "--no-maglev",
  // Pretenuring would allocate parts of waiting requests in the old generation. Once dead they retain all objects that
  // they reference, until a full collection.
  "--no-allocation-site-pretenuring",
  // With one processor, four marking threads leave a fifth of it to the event loop.
  `--v8-pool-size=${Math.min(processors, USUAL_V8_THREADS)}`,
  ...heapFlags(),
  // By default SIGUSR1 opens Node's inspector, through which any local user can run code and read credentials.
  "--disable-sigusr1",
];

/** Default environment variables of any process of the program; the user's own take precedence. */
export const nativeEnvironment = {
  // One arena: otherwise the GNU C library keeps freed memory per thread.
  MALLOC_ARENA_MAX: "1",
  // By default the library raises these limits once a large buffer was freed, and takes later ones from its heap, where
  // one that is in use keeps those before it from being returned.
  MALLOC_MMAP_THRESHOLD_: String(MIB),
  MALLOC_TRIM_THRESHOLD_: String(2 * MIB),
  // Half of libuv's threads may look names up. With its default of 4, two names whose servers are silent would keep
  // all others, such as the database's, from being found.
  UV_THREADPOOL_SIZE: "16",
};
