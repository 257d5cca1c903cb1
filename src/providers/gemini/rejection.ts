const MAX_MESSAGE_CHARS = 500;

/** Nothing beyond this is looked at: some of the patterns take long on long words. */
const MAX_READ_CHARS = 2000;

/** Clients take these words for a final answer about their own account, which is not what they would be about. */
const ACCOUNT_WORDS = /\b(?:quotas?|billing|credits?)\b/i;

/** What a message may hold that belongs to the gateway's account there, or leads to it. */
const PRIVATE = [
  /https?:\/\/[^\s"'<>)]+/gi,
  /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g,
  /\bAIza[\w-]{10,}/g,
  /\b(?:sk|pk)[-_][\w-]{6,}/g,
  /\b(?:key|org|proj|acct|user|req)[-_](?=[\w-]*\d)[\w-]{6,}/gi,
  /\b(?:projects?|organizations?|folders|billingAccounts)[\s/#:]+(?:number[\s:]+)?[\w-]*\d[\w-]*/gi,
  /\bconsumer\s+'[^']*'/gi,
  /\b(?=[\w-]*\d)[A-Za-z0-9_-]{32,}\b/g,
];

/**
 * The provider's own words about what is wrong with a request, for a caller to see: without keys, addresses, account
 * names and over-long text. A neutral sentence when nothing is left, or when they are not about the request.
 */
export function toRejectionMessage(upstream: string): string {
  if (upstream.trim() === "" || ACCOUNT_WORDS.test(upstream)) return "The upstream provider rejected the request.";
  let message = upstream.trim().slice(0, MAX_READ_CHARS);
  for (const pattern of PRIVATE) message = message.replace(pattern, "[removed]");
  return message.slice(0, MAX_MESSAGE_CHARS);
}
