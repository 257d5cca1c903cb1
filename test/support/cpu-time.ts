/** Returns the minimum processor time of three runs, in milliseconds, because other load only adds to it. */
export function cpuMs(work: () => unknown): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...times);
}
