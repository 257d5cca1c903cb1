package dev.parley.client;

import dev.parley.v1.GetModelRequest;
import dev.parley.v1.ListModelsRequest;
import dev.parley.v1.ListModelsResponse;
import dev.parley.v1.Model;
import dev.parley.v1.ModelServiceGrpc;
import dev.parley.v1.ModelServiceGrpc.ModelServiceBlockingStub;
import io.grpc.Channel;
import java.util.ArrayList;
import java.util.List;

/** Tells which models the key may use. */
public final class Models {
  private final ModelServiceBlockingStub stub;

  Models(Channel channel) {
    stub = ModelServiceGrpc.newBlockingStub(channel);
  }

  /**
   * Lists all models that the key may use, page after page.
   *
   * @return the models
   * @throws ParleyException when a call fails
   */
  public List<Model> list() {
    List<Model> models = new ArrayList<>();
    String pageToken = "";
    do {
      ListModelsRequest request = ListModelsRequest.newBuilder().setPageToken(pageToken).build();
      ListModelsResponse page = list(request, RequestOptions.DEFAULT);
      models.addAll(page.getModelsList());
      pageToken = page.getNextPageToken();
    } while (!pageToken.isEmpty());
    return models;
  }

  /**
   * Lists one page of models.
   *
   * @param request which models, and which page of them
   * @param options the options of this call
   * @return the page
   * @throws ParleyException when the call fails
   */
  public ListModelsResponse list(ListModelsRequest request, RequestOptions options) {
    return new Call(options).run(stub, ready -> ready.list(request));
  }

  /**
   * Returns one model.
   *
   * @param id the model's ID
   * @return the model
   * @throws ParleyException when the call fails; NOT_FOUND when the key may not use such a model
   */
  public Model get(String id) {
    return get(id, RequestOptions.DEFAULT);
  }

  /**
   * Returns one model.
   *
   * @param id the model's ID
   * @param options the options of this call
   * @return the model
   * @throws ParleyException when the call fails; NOT_FOUND when the key may not use such a model
   */
  public Model get(String id, RequestOptions options) {
    GetModelRequest request = GetModelRequest.newBuilder().setId(id).build();
    return new Call(options).run(stub, ready -> ready.get(request));
  }
}
