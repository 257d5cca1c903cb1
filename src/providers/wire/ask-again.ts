import type { Emit, UpstreamCall } from "../../core/provider.ts";

/** Returns the call to make after the failure, or throws the failure if there is none. */
export type ToNextCall = (call: UpstreamCall, reason: unknown) => UpstreamCall;

/** Calls `ask`, and after a failure once more with another call. */
export async function askForgiving<T>(
  call: UpstreamCall,
  ask: (call: UpstreamCall) => Promise<T>,
  toNext: ToNextCall,
): Promise<T> {
  try {
    return await ask(call);
  } catch (reason) {
    return ask(toNext(call, reason));
  }
}

/** As `askForgiving`, for a stream. A stream that has emitted a chunk is not repeated. */
export async function streamForgiving(
  call: UpstreamCall,
  ask: (call: UpstreamCall, emit: Emit) => Promise<void>,
  { emit, toNext }: { readonly emit: Emit; readonly toNext: ToNextCall },
): Promise<void> {
  let begun = false;
  try {
    await ask(call, (batch) => {
      begun = true;
      return emit(batch);
    });
  } catch (reason) {
    if (begun) throw reason;
    await ask(toNext(call, reason), emit);
  }
}
