/** The longest message that is passed on. */
const MAX_CHARS = 500;

/** What names the gateway's account, or leads to it, in a message that the provider wrote to us. */
const PRIVATE = [
  /\bhttps?:\/\/\S+/gi,
  /\bwww\.\S+/gi,
  /[\w.+-]+@[\w-]+(\.[\w-]+)+/g,
  // Keys and IDs by their prefix: sk-…, org_…, proj-…, wrkspc_…, req_…
  /\b(sk|pk|key|org|organization|proj|project|wrkspc|workspace|user|acct|account|req)[-_](?=[\w-]*\d)[\w-]{4,}/gi,
  /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi,
  // Anything else that is long and without a meaning: letters and digits mixed.
  /\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{24,}/g,
];

/** Words that a widely used client takes for a final refusal of its own account. */
const MISLEADING = /quota|billing|credit/i;

/**
 * The provider's words to a caller whose request it rejected, on one line, without what identifies the gateway's
 * account. Empty when there is nothing that may be shown.
 */
export function scrub(message: string): string {
  if (MISLEADING.test(message)) return "";
  let text = message.slice(0, 4 * MAX_CHARS);
  for (const pattern of PRIVATE) text = text.replace(pattern, "[removed]");
  return text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, MAX_CHARS);
}
