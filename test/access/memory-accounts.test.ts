import { describeAccountStore } from "./account-store-contract.ts";
import { memoryAccountStore, memoryThrottleStore } from "./memory-accounts.ts";

describeAccountStore("memory", () => ({ accounts: memoryAccountStore(), throttles: memoryThrottleStore() }));
