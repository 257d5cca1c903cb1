/**
 * Runs `work` for each number below `count` on this many concurrent callers; each takes the next number when it is
 * done.
 */
export async function callers(
  { count, atOnce }: { readonly count: number; readonly atOnce: number },
  createCaller: () => (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const call = async (): Promise<void> => {
    const work = createCaller();
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, call));
}
