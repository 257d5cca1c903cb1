export type DialectName = "anthropic" | "gemini" | "openai";

/** A listed model. Requests may use unlisted models too. */
export interface Model {
  readonly id: string;
  readonly dialect: DialectName;
  readonly displayName: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  readonly makesPictures: boolean;
  /** Largest and default length of its vectors; undefined for a model of completions. */
  readonly dimensions?: number;
}

/** Limits of an unlisted model: large, with all capabilities. */
const UNLISTED_MODEL = { contextTokens: 2_000_000, maxOutputTokens: 128_000, makesPictures: true } as const;

const CLAUDE = { dialect: "anthropic", contextTokens: 200_000, maxOutputTokens: 64_000, makesPictures: false } as const;
const GEMINI = { dialect: "gemini", contextTokens: 1_048_576, maxOutputTokens: 65_536, makesPictures: false } as const;

export const MODELS: readonly Model[] = [
  {
    ...CLAUDE,
    id: "claude-opus-4-5-20251101",
    displayName: "Claude Opus 4.5 (simulated)",
    createdAt: "2025-11-24T00:00:00Z",
  },
  {
    ...CLAUDE,
    id: "claude-sonnet-4-5-20250929",
    displayName: "Claude Sonnet 4.5 (simulated)",
    createdAt: "2025-09-29T00:00:00Z",
  },
  {
    ...CLAUDE,
    id: "claude-haiku-4-5-20251001",
    displayName: "Claude Haiku 4.5 (simulated)",
    createdAt: "2025-10-15T00:00:00Z",
  },
  {
    ...GEMINI,
    id: "gemini-3-pro-preview",
    displayName: "Gemini 3 Pro Preview (simulated)",
    createdAt: "2025-11-18T00:00:00Z",
  },
  {
    ...GEMINI,
    id: "gemini-3-flash-preview",
    displayName: "Gemini 3 Flash Preview (simulated)",
    createdAt: "2025-12-17T00:00:00Z",
  },
  {
    ...GEMINI,
    id: "gemini-3-pro-image-preview",
    displayName: "Gemini 3 Pro Image Preview (simulated)",
    createdAt: "2025-11-20T00:00:00Z",
    contextTokens: 65_536,
    maxOutputTokens: 32_768,
    makesPictures: true,
  },
  {
    ...GEMINI,
    id: "gemini-embedding-001",
    displayName: "Gemini Embedding 001 (simulated)",
    createdAt: "2025-07-14T00:00:00Z",
    contextTokens: 2_048,
    maxOutputTokens: 1,
    dimensions: 3_072,
  },
  {
    id: "gpt-5-mini",
    dialect: "openai",
    displayName: "GPT-5 mini (simulated)",
    createdAt: "2025-08-07T00:00:00Z",
    contextTokens: 400_000,
    maxOutputTokens: 128_000,
    makesPictures: false,
  },
  {
    id: "text-embedding-3-small",
    dialect: "openai",
    displayName: "Text embedding 3 small (simulated)",
    createdAt: "2024-01-25T00:00:00Z",
    contextTokens: 8_192,
    maxOutputTokens: 1,
    makesPictures: false,
    dimensions: 1_536,
  },
];

/** Returns the listed models of a dialect. */
export function listModels(dialect: DialectName): readonly Model[] {
  return MODELS.filter((model) => model.dialect === dialect);
}

/** Returns a listed model by ID. */
export function findModel(id: string): Model | undefined {
  return MODELS.find((model) => model.id === id);
}

/** Length of the vectors of an unlisted model. */
const UNLISTED_DIMENSIONS = 1_536;

/** Returns the length of a model's vectors; undefined for a listed model of completions. */
export function findDimensions(id: string): number | undefined {
  const model = findModel(id);
  return model === undefined ? UNLISTED_DIMENSIONS : model.dimensions;
}

/** Whether the model makes no completions. */
export function isForEmbeddings(id: string): boolean {
  return findModel(id)?.dimensions !== undefined;
}

/** Returns the limits of a model, listed or not. */
export function findLimits(id: string): Pick<Model, "contextTokens" | "maxOutputTokens" | "makesPictures"> {
  return findModel(id) ?? UNLISTED_MODEL;
}
