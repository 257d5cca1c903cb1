import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Azure, AZURE_KEY, DEPLOYMENT, startAzure } from "../support/hosts/azure.ts";
import { certificate } from "../support/hosts/certificate.ts";
import { CLIENT, type Entra, SECRET, startEntra, TENANT } from "../support/hosts/entra.ts";
import { type GoogleOAuth, serviceAccount, startGoogleOAuth } from "../support/hosts/google-oauth.ts";
import { CLAUDE, GEMINI, PROJECT, REGION, startVertex, type Vertex } from "../support/hosts/vertex.ts";
import { MAIN, makeHome, type Product, runProduct, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

const home = makeHome();
let [entra, oauth, azure, vertex]: [Entra?, GoogleOAuth?, Azure?, Vertex?] = [];
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  entra = await startEntra();
  oauth = await startGoogleOAuth();
  azure = await startAzure(entra.tokens);
  vertex = await startVertex(oauth.tokens);
  writeFileSync(join(home, "ca.pem"), certificate.cert);
  writeFileSync(join(home, "account.json"), JSON.stringify(serviceAccount));
  env = {
    NODE_EXTRA_CA_CERTS: join(home, "ca.pem"),
    AZURE_AUTHORITY_HOST: entra.url,
    AZURE_TENANT_ID: TENANT,
    AZURE_CLIENT_ID: CLIENT,
    AZURE_CLIENT_SECRET: SECRET,
    GOOGLE_APPLICATION_CREDENTIALS: join(home, "account.json"),
    HTTPS_PROXY: oauth.proxyUrl,
    NO_PROXY: "localhost",
  };
  writeFileSync(join(home, "parley.yaml"), JSON.stringify(config()));
});
afterAll(() => {
  for (const server of [azure, vertex, oauth, entra]) server?.close();
  rmSync(home, { recursive: true });
});

function config() {
  const google = { preset: "vertex", project: PROJECT, region: REGION, base_url: vertex!.url, allow_private: true };
  const microsoft = { preset: "azure", base_url: `${azure!.url}/openai/v1`, allow_private: true };
  return {
    providers: {
      keyed: { ...microsoft, api_keys: [AZURE_KEY] },
      azure: microsoft,
      vertex: google,
      claude: { ...google, dialect: "anthropic" },
    },
    models: {
      "m-keyed": { provider: "keyed", upstream_model: DEPLOYMENT },
      "m-azure": { provider: "azure", upstream_model: DEPLOYMENT },
      "m-vertex": { provider: "vertex", upstream_model: GEMINI },
      "m-claude": { provider: "claude", upstream_model: CLAUDE },
    },
  };
}

/** The libraries' files in the built program, by a word that only they have. */
function filesWith(word: string): string[] {
  const folder = dirname(MAIN);
  const files = readdirSync(folder).filter((name) => name.endsWith(".cjs"));
  return files.filter((name) => readFileSync(join(folder, name), "utf8").includes(word));
}

/** Tests a provider with the built program. Returns its output, and the program's files that it loaded. */
async function test(provider: string) {
  const coverage = join(home, `coverage-${provider}`);
  mkdirSync(coverage);
  const run = runProduct(["providers", "test", provider], { home, env: { ...env, NODE_V8_COVERAGE: coverage } });
  const { code } = await run.ending;
  const [report = ""] = readdirSync(coverage);
  const { result } = JSON.parse(readFileSync(join(coverage, report), "utf8")) as { result: { url: string }[] };
  return { code, ...run.output, loaded: result.map(({ url }) => basename(url)) };
}

describe("the built program", () => {
  const [ofAzure, ofGoogle] = [filesWith("AZURE_FEDERATED_TOKEN_FILE"), filesWith("CLOUDSDK_CONFIG")];

  it.each([
    ["keyed", DEPLOYMENT, []],
    ["azure", DEPLOYMENT, ofAzure],
    ["vertex", GEMINI, ofGoogle],
    ["claude", CLAUDE, ofGoogle],
  ])("gets what authenticates %s, and loads no library for anything else", async (provider, model, expected) => {
    expect(ofAzure.length * ofGoogle.length).toBeGreaterThan(0);
    const { code, stdout, stderr, loaded } = await test(provider);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`${provider} answers: ${model} in`);
    expect(loaded.filter((name) => [...ofAzure, ...ofGoogle].includes(name)).toSorted()).toEqual(expected.toSorted());
  });

  it("serves callers of both hosts, and shows no token", async () => {
    let product: Product | undefined;
    try {
      product = await startProduct({ config: config(), env });
      for (const [model, text] of [
        ["m-azure", "Hej från Azure"],
        ["m-vertex", "Hallo Vertex"],
        ["m-claude", "Bonjour Vertex"],
      ]) {
        const response = await postChat(product.url, product.firstKey, {
          model,
          stream: true,
          messages: [{ role: "user", content: "Hi" }],
        });
        const deltas = [...(await response.text()).matchAll(/"content":"([^"]+)"/g)].map(([, delta]) => delta);
        expect(deltas.join("")).toBe(text);
      }
      expect(product.output.stdout + product.output.stderr).not.toMatch(/issued-[a-p]|s3cret/);
    } finally {
      await product?.stop();
    }
  });
});
