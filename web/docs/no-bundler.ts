/*
 * Replaces `@redocly/openapi-core`, which Redoc calls only for documents that refer to other files. The Parley document
 * does not, and the package would add 75 kB (brotli) and code that needs `eval`.
 */
function bundle(): never {
  throw new Error("the OpenAPI document refers to another file");
}

export { bundle, bundle as Config };
