/** Attribution fields of a request, with display names. */
export const ATTRIBUTIONS = {
  session: "Session",
  endUser: "End user",
  agent: "Agent",
  tag: "Tag",
} as const;

export type AttributionField = keyof typeof ATTRIBUTIONS;

/** The fields, in display order. */
export const ATTRIBUTION_FIELDS = Object.keys(ATTRIBUTIONS) as readonly AttributionField[];
