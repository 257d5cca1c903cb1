import { create } from "@bufbuild/protobuf";
import {
  type Logprobs,
  LogprobsSchema,
  type TokenLogprob,
  TokenLogprobSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { array, number, object, string } from "../wire/lenient.ts";

/** A candidate's `logprobsResult`: the chosen tokens, each with the likeliest ones at its place. Undefined without any. */
export function readLogprobs(result: unknown): Logprobs | undefined {
  const { chosenCandidates, topCandidates } = object(result);
  const top = array(topCandidates);
  const content = array(chosenCandidates).map((chosen, index) => {
    const token = toToken(chosen);
    token.top = array(object(top[index])["candidates"]).map(toToken);
    return token;
  });
  return content.length > 0 ? create(LogprobsSchema, { content }) : undefined;
}

function toToken(value: unknown): TokenLogprob {
  const { token, logProbability } = object(value);
  return create(TokenLogprobSchema, {
    token: string(token),
    logprob: number(logProbability) ?? 0,
  });
}
