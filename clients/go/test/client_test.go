package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	parley "parley.dev/go"
	parleyv1 "parley.dev/go/parley/v1"
)

func TestArguments(t *testing.T) {
	for name, arguments := range map[string][2]string{
		"address is empty": {"", "sk_parley_x"},
		"is a URL":         {"https://gateway.example.com", "sk_parley_x"},
		"key is empty":     {"127.0.0.1:50051", ""},
		"line break":       {"127.0.0.1:50051", "sk_parley_x\n"},
	} {
		client, err := parley.NewClient(arguments[0], arguments[1])
		if client != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error that says %q, got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "sk_parley_x") {
			t.Errorf("the error has the key: %v", err)
		}
	}
}

func TestPrintedClientHasNoKey(t *testing.T) {
	client := newClient(t, "sk_parley_secret")
	// Errors of failed calls are printed too.
	_, err := client.Key.GetCurrent(t.Context(), &parleyv1.GetCurrentKeyRequest{})
	failure(t, err, codes.Unauthenticated)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{client, *client, client.Completions, *client.Completions, err} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, "secret") {
				t.Errorf("%s of %T has the key: %s", format, value, text)
			}
		}
	}
	if text := fmt.Sprint(client); !strings.Contains(text, os.Getenv("PARLEY_GRPC")) {
		t.Errorf("printed as %s", text)
	}
}

func TestUnreachableAddresses(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"connection refused": "127.0.0.1:1",
		"parley.invalid":     "parley.invalid:443",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := parley.NewClient(address, "sk_parley_x", parley.WithPlaintext())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			startedAt := time.Now()
			_, err = client.Completions.Create(t.Context(), ask(model, "Hello."))
			failed := failure(t, err, codes.Unavailable)
			if !strings.Contains(failed.Message, name) || !strings.HasPrefix(failed.Message, "no answer from "+address) || !failed.Retryable || failed.Reason != "" {
				t.Errorf("%v", err)
			}
			if waited := time.Since(startedAt); waited > 5*time.Second {
				t.Errorf("only after %v", waited)
			}
			ctx := parley.WithRequestID(t.Context(), "lost-1")
			for _, err := range client.Completions.Stream(ctx, ask(model, "Hello.")) {
				if failed := failure(t, err, codes.Unavailable); failed.RequestID != "lost-1" {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// fakeEmbedder returns the length of each input as its vector.
type fakeEmbedder struct {
	parleyv1.UnimplementedEmbeddingServiceServer
}

func (fakeEmbedder) Create(_ context.Context, request *parleyv1.EmbeddingRequest) (*parleyv1.Embeddings, error) {
	answer := &parleyv1.Embeddings{Model: request.GetModel()}
	for _, input := range request.GetInputs() {
		answer.Embeddings = append(answer.Embeddings, &parleyv1.Embedding{Values: []float32{float32(len(input.GetText()))}})
	}
	return answer, nil
}

// fakeGateway answers with what a test wants to see, and keeps what it was sent.
type fakeGateway struct {
	parleyv1.UnimplementedCompletionServiceServer

	chunks   []*parleyv1.CompletionChunk
	failures int

	mu       sync.Mutex
	requests []*parleyv1.CompletionRequest
	metadata []metadata.MD
}

func (f *fakeGateway) Create(ctx context.Context, request *parleyv1.CompletionRequest) (*parleyv1.Completion, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.requests, f.metadata = append(f.requests, request), append(f.metadata, md)
	if len(f.requests) <= f.failures {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "10")); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Unavailable, "Not now.")
	}
	return &parleyv1.Completion{Id: "fake"}, nil
}

func (f *fakeGateway) Stream(_ *parleyv1.CompletionRequest, stream grpc.ServerStreamingServer[parleyv1.CompletionChunk]) error {
	for _, chunk := range f.chunks {
		if err := stream.Send(chunk); err != nil {
			return err
		}
	}
	return nil
}

// start runs the gateway on a loopback port and returns its address.
func (f *fakeGateway) start(t *testing.T, opts ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(64*mib))...)
	parleyv1.RegisterCompletionServiceServer(server, f)
	parleyv1.RegisterEmbeddingServiceServer(server, fakeEmbedder{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func connectTo(t *testing.T, address string, opts ...parley.Option) *parley.Client {
	t.Helper()
	client, err := parley.NewClient(address, "sk_parley_fake", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestTLS(t *testing.T) {
	// Only for its certificate, which is valid for 127.0.0.1.
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	gateway := &fakeGateway{}
	address := gateway.start(t, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certified.TLS.Certificates})))
	authorities := x509.NewCertPool()
	authorities.AddCert(certified.Certificate())

	trusting := connectTo(t, address, parley.WithTLS(&tls.Config{RootCAs: authorities}))
	if _, err := trusting.Completions.Create(t.Context(), ask(model, "Hello.")); err != nil {
		t.Fatal(err)
	}
	if got := gateway.metadata[0].Get("authorization"); !slices.Equal(got, []string{"Bearer sk_parley_fake"}) {
		t.Errorf("sent the keys %v", got)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	byDefault := connectTo(t, address)
	if _, err := byDefault.Completions.Create(ctx, ask(model, "Hello.")); err == nil {
		t.Error("a certificate of an unknown authority was trusted")
	}
	if len(gateway.requests) != 1 {
		t.Errorf("%d requests came", len(gateway.requests))
	}
}

func TestPlaintextOnlyWhenChosen(t *testing.T) {
	t.Parallel()
	client, err := parley.NewClient(os.Getenv("PARLEY_GRPC"), os.Getenv("PARLEY_API_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Models.List(t.Context(), &parleyv1.ListModelsRequest{})
	if failed := failure(t, err, codes.Unavailable); !strings.Contains(failed.Message, "TLS") && !strings.Contains(failed.Message, "tls") {
		t.Errorf("the error does not name TLS: %v", err)
	}
}

func TestRetryOfALargeRequest(t *testing.T) {
	gateway := &fakeGateway{failures: 2}
	client := connectTo(t, gateway.start(t), parley.WithPlaintext())
	request := ask(model, "What is this?")
	request.Messages[0].Parts = append(request.Messages[0].Parts, parley.Image("image/png", make([]byte, 6*mib)))
	if _, err := client.Completions.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if n := len(gateway.requests); n != 3 {
		t.Errorf("%d attempts", n)
	}
	if limit := gateway.requests[2].GetMaxResponseBytes(); limit != 64*mib {
		t.Errorf("max_response_bytes is %d", limit)
	}
	if agent := gateway.metadata[0].Get("user-agent"); len(agent) != 1 || !strings.HasPrefix(agent[0], "parley-go/"+parley.Version) {
		t.Errorf("user agent %v", agent)
	}
}

func TestRetriesEnd(t *testing.T) {
	gateway := &fakeGateway{failures: 9}
	client := connectTo(t, gateway.start(t), parley.WithPlaintext())
	_, err := client.Completions.Create(t.Context(), ask(model, "Hello."))
	failed := failure(t, err, codes.Unavailable)
	if !failed.Retryable || failed.RetryAfter != 10*time.Millisecond || len(gateway.requests) != 3 {
		t.Errorf("%d attempts; retry %v after %v", len(gateway.requests), failed.Retryable, failed.RetryAfter)
	}
}

func TestEmbeddings(t *testing.T) {
	client := connectTo(t, new(fakeGateway).start(t), parley.WithPlaintext())
	request := &parleyv1.EmbeddingRequest{Model: "m", Inputs: parley.TextInputs("tide", "sea")}
	answer, err := client.Embeddings.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var lengths []float32
	for _, embedding := range answer.GetEmbeddings() {
		lengths = append(lengths, embedding.GetValues()...)
	}
	if !slices.Equal(lengths, []float32{4, 3}) {
		t.Errorf("got %v", lengths)
	}
}

func TestErrorReason(t *testing.T) {
	for name, want := range map[string]parleyv1.ErrorReason{
		"":                parleyv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
		"MODEL_NOT_FOUND": parleyv1.ErrorReason_ERROR_REASON_MODEL_NOT_FOUND,
		"OF_TOMORROW":     parleyv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
	} {
		if got := (&parley.Error{Reason: name}).ErrorReason(); got != want {
			t.Errorf("%q is %v", name, got)
		}
	}
}

func TestStreamWithoutReport(t *testing.T) {
	gateway := &fakeGateway{chunks: []*parleyv1.CompletionChunk{
		{Event: &parleyv1.CompletionChunk_Start{Start: &parleyv1.CompletionStart{Id: "cut"}}},
		{Event: &parleyv1.CompletionChunk_Usage{Usage: &parleyv1.Usage{TotalTokens: 3}}},
	}}
	client := connectTo(t, gateway.start(t), parley.WithPlaintext())
	chunks := 0
	var last error
	for chunk, err := range client.Completions.Stream(t.Context(), ask(model, "Hello.")) {
		if last = err; chunk != nil {
			chunks++
		}
	}
	if failed := failure(t, last, codes.Internal); chunks != 2 || !errors.Is(last, io.ErrUnexpectedEOF) || failed.Retryable {
		t.Errorf("after %d chunks: %v", chunks, last)
	}
}

func TestLargestAnswer(t *testing.T) {
	start := &parleyv1.PartStart{Part: parley.Image("image/png", nil)}
	picture := &parleyv1.PartDelta_ImageData{ImageData: bytes.Repeat([]byte{1}, 63*mib)}
	gateway := &fakeGateway{chunks: []*parleyv1.CompletionChunk{
		{Event: &parleyv1.CompletionChunk_PartStart{PartStart: start}},
		{Event: &parleyv1.CompletionChunk_PartDelta{PartDelta: &parleyv1.PartDelta{Content: picture}}},
		{Event: &parleyv1.CompletionChunk_Report{Report: &parleyv1.Report{}}},
	}}
	client := connectTo(t, gateway.start(t), parley.WithPlaintext())
	if _, answer := collect(t, client, ask(model, "Hello.")); len(answer.GetChoices()) != 1 {
		t.Error("a message of 63 MiB is missing")
	}
	picture.ImageData = make([]byte, 65*mib)
	var last error
	for _, err := range client.Completions.Stream(t.Context(), ask(model, "Hello.")) {
		last = err
	}
	if failed := failure(t, last, codes.ResourceExhausted); failed.Retryable {
		t.Errorf("%v", last)
	}
}
