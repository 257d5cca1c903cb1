import { describe, expect, it } from "vitest";
import { PartBudget } from "../../../src/core/part-budget.ts";
import { ProviderDetails } from "../../../src/providers/gemini/provider-details.ts";
import { keepAll } from "../../../src/providers/wire/redaction.ts";

describe("details of a provider", () => {
  it.each([["a text"], [7], [true], [null], [{}], [[]], [undefined]])("are not %j", (value) => {
    const details = new ProviderDetails(new PartBudget());
    details.add({ safetyRatings: [{ category: "a" }], groundingMetadata: { webSearchQueries: ["tides"] } });
    details.add({ safetyRatings: value, groundingMetadata: value });
    expect(details.read(keepAll)).toEqual({
      details: {
        "gemini.safety_ratings": '[{"category":"a"}]',
        "gemini.grounding_metadata": '{"webSearchQueries":["tides"]}',
      },
      grounding: { webSearchQueries: ["tides"] },
    });
  });
});
