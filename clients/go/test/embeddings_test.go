package app

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	parley "parley.dev/go"
	parleyv1 "parley.dev/go/parley/v1"
)

const embeddingModel = "gamma-embedding-3-small"

func TestEmbeddingsOfTheGateway(t *testing.T) {
	request := &parleyv1.EmbeddingRequest{Model: embeddingModel, Inputs: parley.TextInputs("tide", "sea", "tide")}
	made, err := connect(t).Embeddings.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var vectors [][]float32
	for _, embedding := range made.GetEmbeddings() {
		vectors = append(vectors, embedding.GetValues())
	}
	if len(vectors) != 3 || len(vectors[0]) != len(vectors[1]) || slices.Equal(vectors[0], vectors[1]) || !slices.Equal(vectors[0], vectors[2]) {
		t.Errorf("made %.300v", vectors)
	}
	if made.GetModel() != embeddingModel || made.GetUsage().GetInputTokens() == 0 || len(made.GetReport().GetAttempts()) != 1 {
		t.Errorf("model %s, usage %v, report %v", made.GetModel(), made.GetUsage(), made.GetReport())
	}
}

func TestLengthOfEmbeddings(t *testing.T) {
	request := &parleyv1.EmbeddingRequest{Model: embeddingModel, Inputs: parley.TextInputs("tide"), Dimensions: new(int32(8))}
	made, err := connect(t).Embeddings.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(made.GetEmbeddings()[0].GetValues()); n != 8 {
		t.Errorf("%d components", n)
	}
}

func TestModelWithoutEmbeddings(t *testing.T) {
	request := &parleyv1.EmbeddingRequest{Model: model, Inputs: parley.TextInputs("tide")}
	_, err := connect(t).Embeddings.Create(t.Context(), request)
	if failed := failure(t, err, codes.InvalidArgument); failed.ErrorReason() != parleyv1.ErrorReason_ERROR_REASON_INVALID_REQUEST {
		t.Errorf("%#v", failed)
	}
}
