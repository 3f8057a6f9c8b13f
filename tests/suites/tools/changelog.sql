--liquibase formatted sql
--changeset tools:1
CREATE TABLE item (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40));
--rollback DROP TABLE item;
