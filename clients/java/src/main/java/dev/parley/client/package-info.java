/**
 * The client of Parley, a completion gateway: a connection with key, limits and retries, streams, and errors. Requests
 * and answers are the messages of {@code dev.parley.v1}, which is generated from the contract.
 *
 * @see dev.parley.client.ParleyClient
 */
package dev.parley.client;
