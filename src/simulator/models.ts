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
}

/** Limits of an unlisted model: large, with all capabilities. */
export const UNLISTED_MODEL = { contextTokens: 2_000_000, maxOutputTokens: 128_000, makesPictures: true } as const;

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
    id: "gpt-5-mini",
    dialect: "openai",
    displayName: "GPT-5 mini (simulated)",
    createdAt: "2025-08-07T00:00:00Z",
    contextTokens: 400_000,
    maxOutputTokens: 128_000,
    makesPictures: false,
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

/** Returns the limits of a model, listed or not. */
export function findLimits(id: string): Pick<Model, "contextTokens" | "maxOutputTokens" | "makesPictures"> {
  return findModel(id) ?? UNLISTED_MODEL;
}
