/** A response that is not HTTP, whose length is ambiguous, or that takes more work than it may. */
export class ResponseError extends Error {}
