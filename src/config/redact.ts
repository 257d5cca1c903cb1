import type { Config } from "./config.ts";

const HIDDEN = "…";

/** The configuration with nothing secret in it, fit for a log or a terminal: credentials and header values are hidden. */
export function redactConfig(config: Config): Config {
  return {
    ...config,
    databaseUrl: config.databaseUrl && HIDDEN,
    redisUrl: config.redisUrl && HIDDEN,
    providers: config.providers.map((provider) =>
      provider.simulated
        ? provider
        : {
            ...provider,
            apiKeys: provider.apiKeys.map(() => HIDDEN),
            headers: Object.fromEntries(Object.keys(provider.headers).map((name) => [name, HIDDEN])),
          },
    ),
  };
}
