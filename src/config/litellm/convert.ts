import { Document, isMap, isScalar } from "yaml";
import { formatPath } from "../config-error.ts";
import { isRecord, readDocument } from "../document.ts";
import { MODEL_ID } from "../scalars.ts";
import { type Credentials, readDeployment } from "./deployment.ts";
import { addModels, type ModelSections, nameProvider, namesIn, readFallbacks } from "./models.ts";
import { Part, withMerges } from "./part.ts";
import { readHost } from "./hosts.ts";
import { readProvider } from "./provider.ts";
import { type Remark, Remarks } from "./remarks.ts";
import { readSettings } from "./settings.ts";

/** A setting of LiteLLM's file that has no counterpart, or one that differs. */
interface PlacedRemark extends Pick<Remark, "kind" | "text"> {
  /** `file:line:column` in LiteLLM's file. */
  readonly place: string;
  /** The setting's path there. */
  readonly setting: string;
}

/** The result for a file of LiteLLM. */
export interface Conversion {
  /** A configuration of Parley, with the remarks as comments. */
  readonly yaml: string;
  readonly remarks: readonly PlacedRemark[];
}

/**
 * Converts a `config.yaml` of LiteLLM's proxy into a configuration of Parley. No secret of the file is in the result: each is a
 * variable. Throws ConfigError for a text that is not one map of YAML. Source of the format: "Proxy Configs" of LiteLLM's
 * documentation, and its `litellm/types/router.py`, November 2026.
 */
export function convertLitellm(text: string, file: string): Conversion {
  const source = readDocument(text, file);
  const top = new Part(withMerges(source.value), []);
  const remarks = new Remarks();
  const sections: ModelSections = { providers: {}, models: {}, aliases: {} };
  const settings = readTop(top, sections, remarks);
  const filled = Object.entries({ ...settings, ...sections }).filter(
    ([, section]) => Object.keys(section as object).length > 0,
  );
  const placed = remarks.all.map(({ path, ...remark }) => ({
    ...remark,
    place: source.locate(path, "key"),
    setting: formatPath(path),
  }));
  return { yaml: write(Object.fromEntries(filled), placed), remarks: placed };
}

/** Fills `sections`, and returns the other ones. */
function readTop(top: Part, sections: ModelSections, remarks: Remarks): Readonly<Record<string, unknown>> {
  const [router, general, module] = ["router_settings", "general_settings", "litellm_settings"].map((key) =>
    top.part(key),
  ) as [Part, Part, Part];
  const credentials = readCredentials(top.list("credential_list"));
  const entries = top.list("model_list").map((value, index) => new Part(value, ["model_list", index]));
  const wildcards = entries.filter((entry) => isWildcard(entry));
  const deployments = entries
    .filter((entry) => !wildcards.includes(entry))
    .flatMap((entry) => readDeployment(entry, credentials, remarks) ?? []);
  const fallbacks = new Map<string, readonly string[]>();
  for (const part of [module, router]) readFallbacks(part, fallbacks, remarks);
  const byDefault = [router, module].flatMap((part) => namesIn(part.list("default_fallbacks")));
  if (byDefault.length > 0 && !fallbacks.has("*")) fallbacks.set("*", byDefault);
  addModels({ deployments, fallbacks, router, sections, remarks });
  for (const entry of wildcards) addImport(entry, sections, remarks);
  addAliases(router.part("model_group_alias"), sections, remarks);
  const settings = readSettings({ router, general, module }, remarks);
  for (const part of [router, general, module, top]) remarks.unread(part);
  return settings;
}

function readCredentials(list: readonly unknown[]): Credentials {
  const named = list.filter(isRecord).map(({ credential_name: name, credential_values: values }) => [name, values]);
  return new Map(
    named.filter((pair): pair is [string, Record<string, unknown>] => typeof pair[0] === "string" && isRecord(pair[1])),
  );
}

function isWildcard(entry: Part): boolean {
  const name = entry.takeText("model_name") ?? "";
  return name.includes("*") || (entry.part("litellm_params").takeText("model") ?? "").includes("*");
}

const PROVIDER_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** `openai/*` imports the models that a provider lists. */
function addImport(entry: Part, sections: ModelSections, remarks: Remarks): void {
  const params = entry.part("litellm_params");
  const name = entry.takeText("model_name") ?? "";
  const model = params.takeText("model") ?? "";
  const path = [...entry.path, "model_name"];
  const prefix = /^(.+)\/\*$/.exec(name)?.[1];
  const isWhole = name === "*" || (prefix !== undefined && PROVIDER_NAME.test(prefix));
  const host = readHost(model, params.takeText("custom_llm_provider"));
  if (!isWhole || host.model !== "*" || host.rule?.kind !== "address") {
    const advice = model === "*" ? "; for each provider write an entry with its preset" : "";
    remarks.lost(path, `Parley imports all models of a provider with a list, as "*" or "NAME/*"${advice}`);
    return;
  }
  const hosted = readProvider({ host, params, remarks, responses: false })!;
  const provider = nameProvider(sections, prefix ?? hosted.name, hosted.entry);
  if (prefix !== undefined && provider !== prefix)
    remarks.check(path, `the provider is ${provider}, so callers write ${provider}/MODEL`);
  sections.models[prefix === undefined ? "*" : `${provider}/*`] = "import";
  if (prefix === undefined)
    remarks.check(path, '"*" imports the models of all providers with a list that have no entry of their own');
  for (const part of [entry, params]) remarks.unread(part);
}

function addAliases(aliases: Part, { models, aliases: written }: ModelSections, remarks: Remarks): void {
  for (const alias of aliases.keys()) {
    const value = aliases.take(alias);
    const target = isRecord(value) ? value["model"] : value;
    if (typeof target !== "string" || !Object.hasOwn(models, target))
      remarks.lost([...aliases.path, alias], "it stands for no converted model");
    else if (Object.hasOwn(models, alias))
      remarks.lost([...aliases.path, alias], "it is the name of a model already, which goes before an alias");
    else if (!MODEL_ID.test(alias)) remarks.lost([...aliases.path, alias], "an alias cannot have these characters");
    else written[alias] = target;
  }
}

const HEADER = [
  " Converted from LiteLLM's configuration by: parley config convert litellm FILE",
  " Check it, with the variables that it names: parley config check parley.yaml",
  " Models are taken to understand pictures, and to have the capabilities of their dialect; change modalities and",
  " capabilities of those that differ (docs/configuration.md#models).",
].join("\n");

/** The result as text: remarks about a model stand before it, the others at the end. */
function write(value: object, remarks: readonly (PlacedRemark & Pick<Remark, "model">)[]): string {
  const document = new Document(value);
  document.commentBefore = HEADER;
  const models = document.get("models");
  const keys = isMap(models) ? models.items.map(({ key }) => key).filter(isScalar) : [];
  const rest: PlacedRemark[] = [];
  for (const remark of remarks) {
    const key = keys.find(({ value: name }) => name === remark.model);
    if (key === undefined) rest.push(remark);
    else key.commentBefore = joinLines(key.commentBefore, toComment(remark));
  }
  if (rest.length > 0) document.comment = rest.map(toComment).join("\n");
  return document.toString({ lineWidth: 0 });
}

function joinLines(before: string | null | undefined, line: string): string {
  return before ? `${before}\n${line}` : line;
}

function toComment({ kind, place, setting, text }: PlacedRemark): string {
  return ` ${kind}: ${setting} (${place}): ${text}`;
}
