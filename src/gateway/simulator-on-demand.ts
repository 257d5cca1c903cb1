import type { Config } from "../config/config.ts";
import type { Simulator } from "../simulator/server.ts";

/** The embedded simulator: started when a configuration first needs it, and kept from then on. */
export class SimulatorOnDemand {
  readonly #options: Config["simulator"];
  #running: Promise<Simulator> | undefined;

  constructor({ simulator }: Config) {
    this.#options = simulator;
  }

  /** URL of the simulator; undefined when every provider of the configuration is a real one. */
  async url({ providers }: Config): Promise<string | undefined> {
    if (!providers.some((provider) => provider.simulated)) return undefined;
    this.#running ??= start(this.#options).catch((error: unknown) => {
      this.#running = undefined;
      throw error;
    });
    return (await this.#running).url;
  }

  async close(): Promise<void> {
    await (await this.#running)?.close();
  }
}

/** Imported on demand: most processes never need it. */
async function start(options: Config["simulator"]): Promise<Simulator> {
  const { startSimulator } = await import("../simulator/server.ts");
  return startSimulator(options);
}
